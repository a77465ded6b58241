"""The settings of transactions, typed: a part of `ServerConfig`."""

from dataclasses import dataclass


@dataclass(frozen=True, eq=False, repr=False)
class TransactionCoordinatorConfig:
    """Attributes are Kafka's property names, as in `ServerConfig`."""

    transaction_state_log_num_partitions: int = 50
    transaction_state_log_replication_factor: int = 1
    transaction_state_log_min_isr: int = 1
    transaction_state_log_segment_bytes: int = 100 * 1024 * 1024
    transaction_state_log_load_buffer_size: int = 5 * 1024 * 1024
    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000
    transaction_partition_verification_enable: bool = True
    add_partitions_to_txn_retry_backoff_max_ms: int = 100
