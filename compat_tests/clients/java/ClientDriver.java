// Apache Kafka's Java client, driven by lines of JSON: one command per line on standard input,
// replies and events as lines on standard output, told apart by the command's id. One Java process
// serves the whole test run, because starting one costs more than most tests.
//
// Commands: produce, consume, positions, stream (send counted values until stopped), follow (read
// until stopped), member (read as a member of a group until stopped), ask (a running member), stop,
// open (a transactional producer), transaction (what such a producer can do), transform (consume,
// transform and produce in one transaction), tool (one of Kafka's command line tools). Bytes travel
// as base64, null as null.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Exit;

public class ClientDriver {
    static final ObjectMapper JSON = new ObjectMapper();
    static final PrintStream OUT = System.out;
    static final Map<Integer, Boolean> RUNNING = new ConcurrentHashMap<>();
    static final Map<Integer, Queue<JsonNode>> QUESTIONS = new ConcurrentHashMap<>();
    static final Map<Integer, KafkaProducer<byte[], byte[]>> PRODUCERS = new ConcurrentHashMap<>();

    public static void main(String[] args) throws Exception {
        ExecutorService pool = Executors.newCachedThreadPool();
        BufferedReader input = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonNode command = JSON.readTree(line);
            int id = command.get("id").asInt();
            RUNNING.put(id, true);
            pool.submit(() -> run(id, command));
        }
        RUNNING.clear();
        pool.shutdownNow();
        System.exit(0);
    }

    static void run(int id, JsonNode command) {
        ObjectNode reply = JSON.createObjectNode();
        try {
            switch (command.get("op").asText()) {
                case "produce": produce(command, reply); break;
                case "consume": consume(command, reply); break;
                case "positions": positions(command, reply); break;
                case "stream": stream(id, command); break;
                case "follow": follow(id, command); break;
                case "member": member(id, command); break;
                case "ask": QUESTIONS.get(command.get("target").asInt()).add(command); break;
                case "open": open(id, command, reply); break;
                case "transaction": transaction(command); break;
                case "transform": transform(command); break;
                case "tool": tool(command, reply); break;
                case "stop": RUNNING.remove(command.get("target").asInt()); break;
                default: throw new IllegalArgumentException("unknown op");
            }
        } catch (Throwable failure) {
            Throwable cause = failure instanceof ExecutionException ? failure.getCause() : failure;
            reply.put("error", cause.getClass().getSimpleName());
            reply.put("detail", String.valueOf(cause.getMessage()));
        }
        reply.put("done", true);
        emit(id, reply);
    }

    static void emit(int id, ObjectNode reply) {
        reply.put("id", id);
        synchronized (OUT) {
            OUT.println(reply);
            OUT.flush();
        }
    }

    static void produce(JsonNode command, ObjectNode reply) throws Exception {
        ArrayNode deliveries = reply.putArray("deliveries");
        try (KafkaProducer<byte[], byte[]> producer = producer(command.get("config"))) {
            List<Future<RecordMetadata>> futures = new ArrayList<>();
            for (JsonNode record : command.get("records")) {
                futures.add(producer.send(producerRecord(command, record)));
            }
            producer.flush();
            for (Future<RecordMetadata> future : futures) {
                RecordMetadata where = future.get(30, TimeUnit.SECONDS);
                ObjectNode delivery = deliveries.addObject();
                delivery.put("partition", where.partition());
                delivery.put("offset", where.hasOffset() ? where.offset() : null);
            }
        }
    }

    static ProducerRecord<byte[], byte[]> producerRecord(JsonNode command, JsonNode record) {
        JsonNode partition = command.get("partition");
        JsonNode timestamp = record.get("timestamp_ms");
        List<Header> headers = new ArrayList<>();
        for (JsonNode header : record.get("headers")) {
            headers.add(new RecordHeader(header.get(0).asText(), bytes(header.get(1))));
        }
        return new ProducerRecord<>(
            command.get("topic").asText(),
            partition.isNull() ? null : partition.asInt(),
            timestamp.isNull() ? null : timestamp.asLong(),
            bytes(record.get("key")),
            bytes(record.get("value")),
            headers);
    }

    static void consume(JsonNode command, ObjectNode reply) {
        int count = command.get("count").asInt();
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        ArrayNode records = reply.putArray("records");
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(command)) {
            List<TopicPartition> assigned = new ArrayList<>();
            for (JsonNode number : command.get("partitions")) {
                assigned.add(new TopicPartition(command.get("topic").asText(), number.asInt()));
            }
            consumer.assign(assigned);
            assigned.forEach(where -> consumer.seek(where, command.get("start").asLong()));
            while (records.size() < count) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException(records.size() + " of " + count + " came");
                }
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    if (records.size() < count) {
                        describe(record, records.addObject());
                    }
                }
            }
        }
    }

    static void describe(ConsumerRecord<byte[], byte[]> record, ObjectNode described) {
        described.put("partition", record.partition());
        described.put("offset", record.offset());
        described.put("key", text(record.key()));
        described.put("value", text(record.value()));
        described.put("timestamp_ms", record.timestamp());
        described.put("log_append_time",
            record.timestampType() == TimestampType.LOG_APPEND_TIME);
        ArrayNode headers = described.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(text(header.value()));
        }
    }

    // Beginning and end of the partition, and for each timestamp the offset found or null.
    static void positions(JsonNode command, ObjectNode reply) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(command)) {
            TopicPartition where = topicPartition(command);
            reply.put("earliest", consumer.beginningOffsets(List.of(where)).get(where));
            reply.put("latest", consumer.endOffsets(List.of(where)).get(where));
            ArrayNode found = reply.putArray("for_times");
            for (JsonNode timestamp : command.get("timestamps")) {
                OffsetAndTimestamp one =
                    consumer.offsetsForTimes(Map.of(where, timestamp.asLong())).get(where);
                found.add(one == null ? null : one.offset());
            }
        }
    }

    // Sends "<prefix><n>" for n = 0, 1, 2 … and reports each invocation and each outcome.
    static void stream(int id, JsonNode command) throws Exception {
        String prefix = command.get("prefix").asText();
        long pause = command.get("pause_us").asLong();
        try (KafkaProducer<byte[], byte[]> producer = producer(command.get("config"))) {
            for (long n = 0; RUNNING.containsKey(id); n++) {
                String value = prefix + n;
                event(id, "invoke", value, -1);
                producer.send(
                    new ProducerRecord<>(command.get("topic").asText(),
                        command.get("partition").asInt(), null, value.getBytes("UTF-8")),
                    (where, failure) -> event(id, failure == null ? "ok" : "unknown", value,
                        failure == null && where.hasOffset() ? where.offset() : -1));
                TimeUnit.MICROSECONDS.sleep(pause);
            }
        }
    }

    // Reads on from an offset and reports every record.
    static void follow(int id, JsonNode command) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(command)) {
            TopicPartition where = topicPartition(command);
            consumer.assign(List.of(where));
            consumer.seek(where, command.get("start").asLong());
            while (RUNNING.containsKey(id)) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    event(id, "poll", new String(record.value(), StandardCharsets.UTF_8),
                        record.offset());
                }
            }
        }
    }

    // Reads as a member of a group and tells what compat_tests/groups/worker.py tells.
    static void member(int id, JsonNode command) throws Exception {
        QUESTIONS.put(id, new ConcurrentLinkedQueue<>());
        String commit = command.get("commit").isNull() ? null : command.get("commit").asText();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(command)) {
            List<String> topics = new ArrayList<>();
            command.get("topics").forEach(topic -> topics.add(topic.asText()));
            consumer.subscribe(topics, new ConsumerRebalanceListener() {
                public void onPartitionsRevoked(Collection<TopicPartition> revoked) {
                    emit(id, JSON.createObjectNode().put("event", "rebalanced"));
                }

                public void onPartitionsAssigned(Collection<TopicPartition> assigned) {
                    emit(id, JSON.createObjectNode().put("event", "rebalanced"));
                }
            });
            Set<TopicPartition> before = null;
            int generationBefore = -1;
            while (RUNNING.containsKey(id)) {
                double began = seconds();
                var records = consumer.poll(Duration.ofMillis(50));
                Set<TopicPartition> now = consumer.assignment();
                int generation = consumer.groupMetadata().generationId();
                if (!now.equals(before) || generation != generationBefore) {
                    ObjectNode event = JSON.createObjectNode().put("event", "assignment")
                        .put("at", began).put("noticed", seconds()).put("generation", generation);
                    ArrayNode partitions = event.putArray("partitions");
                    now.forEach(one -> partitions.addArray().add(one.topic()).add(one.partition()));
                    emit(id, event);
                    before = Set.copyOf(now);
                    generationBefore = generation;
                }
                if (!records.isEmpty()) {
                    tellPolled(id, records);
                    if (commit != null) {
                        commitPolled(id, consumer, records, commit);
                    }
                    Thread.sleep(command.get("pause_ms").asLong());
                }
                Queue<JsonNode> questions = QUESTIONS.get(id);
                for (JsonNode one = questions.poll(); one != null; one = questions.poll()) {
                    answer(id, consumer, one);
                }
            }
        }
    }

    // The machine's monotonic clock, which other processes read as well.
    static double seconds() {
        return System.nanoTime() / 1e9;
    }

    static void tellPolled(int id, ConsumerRecords<byte[], byte[]> records) {
        ObjectNode event = JSON.createObjectNode().put("event", "polled").put("at", seconds());
        ArrayNode told = event.putArray("records");
        for (ConsumerRecord<byte[], byte[]> record : records) {
            told.addArray().add(record.topic()).add(record.partition()).add(record.offset())
                .add(new String(record.value(), StandardCharsets.UTF_8));
        }
        emit(id, event);
    }

    static void commitPolled(int id, KafkaConsumer<byte[], byte[]> consumer,
            ConsumerRecords<byte[], byte[]> records, String how) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            offsets.put(new TopicPartition(record.topic(), record.partition()),
                new OffsetAndMetadata(record.offset() + 1));
        }
        tellOffsets(id, "committing", offsets, null);
        if (how.equals("async")) {
            consumer.commitAsync(offsets, (done, failure) -> tellOffsets(
                id, failure == null ? "committed" : "refused", offsets, failure));
            return;
        }
        try {
            consumer.commitSync(offsets);
            tellOffsets(id, "committed", offsets, null);
        } catch (KafkaException failure) {
            tellOffsets(id, "refused", offsets, failure);
        }
    }

    static void tellOffsets(int id, String kind, Map<TopicPartition, OffsetAndMetadata> offsets,
            Exception failure) {
        ObjectNode event = JSON.createObjectNode().put("event", kind).put("at", seconds());
        ArrayNode told = event.putArray("offsets");
        offsets.forEach((where, offset) ->
            told.addArray().add(where.topic()).add(where.partition()).add(offset.offset()));
        if (failure != null) {
            event.put("error", failure.getClass().getSimpleName());
        }
        emit(id, event);
    }

    static void answer(int id, KafkaConsumer<byte[], byte[]> consumer, JsonNode question) {
        ObjectNode event = JSON.createObjectNode().put("event", "answer");
        JsonNode given = question.get("arguments");
        try {
            switch (question.get("what").asText()) {
                case "member_id":
                    event.put("answer", consumer.groupMetadata().memberId());
                    break;
                case "committed": {
                    TopicPartition where =
                        new TopicPartition(given.get(0).asText(), given.get(1).asInt());
                    OffsetAndMetadata found = consumer.committed(Set.of(where)).get(where);
                    if (found == null) {
                        event.putNull("answer");
                    } else {
                        event.putArray("answer").add(found.offset()).add(found.metadata());
                    }
                    break;
                }
                default: {
                    TopicPartition where =
                        new TopicPartition(given.get(0).asText(), given.get(1).asInt());
                    consumer.commitSync(Map.of(where,
                        new OffsetAndMetadata(given.get(2).asLong(), given.get(3).asText())));
                    event.putNull("answer");
                }
            }
        } catch (KafkaException failure) {
            event.put("error", failure.getClass().getSimpleName() + ": " + failure.getMessage());
        }
        emit(id, event);
    }

    static void open(int id, JsonNode command, ObjectNode reply) {
        KafkaProducer<byte[], byte[]> producer = producer(command.get("config"));
        PRODUCERS.put(id, producer);
        producer.initTransactions();
        reply.put("producer", id);
    }

    static void transaction(JsonNode command) {
        int target = command.get("target").asInt();
        KafkaProducer<byte[], byte[]> producer = PRODUCERS.get(target);
        switch (command.get("what").asText()) {
            case "begin": producer.beginTransaction(); break;
            case "send":
                producer.send(new ProducerRecord<>(command.get("topic").asText(),
                    command.get("partition").asInt(), null,
                    command.get("value").asText().getBytes(StandardCharsets.UTF_8)));
                break;
            case "flush": producer.flush(); break;
            case "commit": producer.commitTransaction(); break;
            case "abort": producer.abortTransaction(); break;
            default: PRODUCERS.remove(target).close(Duration.ZERO);
        }
    }

    // Writes a number of records again in upper case and commits what was read with them.
    static void transform(JsonNode command) {
        int count = command.get("count").asInt();
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(command);
                KafkaProducer<byte[], byte[]> producer = producer(command.get("producer"))) {
            producer.initTransactions();
            consumer.subscribe(List.of(command.get("source").asText()));
            producer.beginTransaction();
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            for (int read = 0; read < count;) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException(read + " of " + count + " came");
                }
                for (ConsumerRecord<byte[], byte[]> one : consumer.poll(Duration.ofMillis(200))) {
                    if (read++ < count) {
                        String value = new String(one.value(), StandardCharsets.UTF_8);
                        producer.send(new ProducerRecord<>(command.get("target").asText(), 0, null,
                            value.toUpperCase().getBytes(StandardCharsets.UTF_8)));
                        offsets.put(new TopicPartition(one.topic(), one.partition()),
                            new OffsetAndMetadata(one.offset() + 1));
                    }
                }
            }
            producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
            producer.flush();
            if (command.get("commits").asBoolean()) {
                producer.commitTransaction();
            } else {
                producer.abortTransaction();
            }
        }
    }

    // Runs a tool in this process, one at a time: starting Java costs more than most tools do.
    static synchronized void tool(JsonNode command, ObjectNode reply) throws Exception {
        List<String> arguments = new ArrayList<>();
        command.get("arguments").forEach(one -> arguments.add(one.asText()));
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        PrintStream errors = System.err;
        PrintStream capture = new PrintStream(printed, true, StandardCharsets.UTF_8);
        int code = 0;
        Exit.setExitProcedure((status, message) -> {
            throw new ExitException(status);
        });
        System.setOut(capture);
        System.setErr(capture);
        try {
            Class.forName(command.get("main").asText()).getMethod("main", String[].class)
                .invoke(null, (Object) arguments.toArray(new String[0]));
        } catch (InvocationTargetException failure) {
            if (!(failure.getCause() instanceof ExitException exit)) {
                throw failure;
            }
            code = exit.code;
        } finally {
            System.setOut(OUT);
            System.setErr(errors);
            Exit.resetExitProcedure();
        }
        reply.put("code", code);
        reply.put("printed", printed.toString(StandardCharsets.UTF_8));
    }

    static class ExitException extends RuntimeException {
        final int code;

        ExitException(int code) {
            this.code = code;
        }
    }

    static void event(int id, String kind, String value, long offset) {
        emit(id, JSON.createObjectNode().put("event", kind).put("value", value)
            .put("offset", offset));
    }

    static TopicPartition topicPartition(JsonNode command) {
        return new TopicPartition(
            command.get("topic").asText(), command.get("partition").asInt());
    }

    static Properties properties(JsonNode config) {
        Properties properties = new Properties();
        config.fields().forEachRemaining(
            entry -> properties.put(entry.getKey(), entry.getValue().asText()));
        return properties;
    }

    static KafkaProducer<byte[], byte[]> producer(JsonNode config) {
        return new KafkaProducer<>(
            properties(config), new ByteArraySerializer(), new ByteArraySerializer());
    }

    static KafkaConsumer<byte[], byte[]> consumer(JsonNode command) {
        return new KafkaConsumer<>(
            properties(command.get("config")), new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static byte[] bytes(JsonNode text) {
        return text.isNull() ? null : Base64.getDecoder().decode(text.asText());
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : Base64.getEncoder().encodeToString(bytes);
    }
}
