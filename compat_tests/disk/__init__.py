"""The files: Apache Kafka's tool reads what klamm wrote, klamm serves what Apache Kafka wrote."""
