// One warm Java client for the whole run, so that no rate contains the start of a JVM.
//
// It reads one command per line, with its words separated by tabs, and answers each with a line
// that starts with "@done" or "@failed". Before that line stands whatever the command printed.
//
//   produce        arguments of kafka-producer-perf-test, which is then run inside this process
//   consume-group  arguments of kafka-consumer-perf-test, likewise
//   consume        bootstrap, topic, partitions, records, readers: readers that assign themselves
//                  all partitions without a group and read from the start until they have seen
//                  `records` records each; answers "@done bytes seconds"

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.tools.ConsumerPerformance;
import org.apache.kafka.tools.ProducerPerformance;

public class JavaClient {
    private static final long SILENCE_NS_MAX = 10_000_000_000L;

    public static void main(String[] arguments) throws Exception {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("@done");
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split("\t");
            String[] rest = Arrays.copyOfRange(words, 1, words.length);
            try {
                System.out.println("@done " + run(words[0], rest));
            } catch (Exception problem) {
                System.out.println("@failed " + problem);
            }
            System.out.flush();
        }
    }

    private static String run(String command, String[] rest) throws Exception {
        switch (command) {
            case "produce":
                ProducerPerformance.main(rest);
                return "";
            case "consume-group":
                ConsumerPerformance.main(rest);
                return "";
            case "consume":
                return consume(rest[0], rest[1], Integer.parseInt(rest[2]),
                    Long.parseLong(rest[3]), Integer.parseInt(rest[4]));
            default:
                throw new IllegalArgumentException("unknown command " + command);
        }
    }

    private static String consume(
        String bootstrap, String topic, int partitions, long records, int readers
    ) throws Exception {
        List<Callable<Long>> reads = new ArrayList<>();
        List<KafkaConsumer<byte[], byte[]>> consumers = new ArrayList<>();
        for (int index = 0; index < readers; index++) {
            KafkaConsumer<byte[], byte[]> consumer = assigned(bootstrap, topic, partitions);
            consumers.add(consumer);
            reads.add(() -> read(consumer, records));
        }
        ExecutorService threads = Executors.newFixedThreadPool(readers);
        try {
            long started = System.nanoTime();
            long bytes = 0;
            for (Future<Long> read : threads.invokeAll(reads)) {
                bytes += read.get();
            }
            return bytes + " " + (System.nanoTime() - started) / 1e9;
        } finally {
            threads.shutdown();
            consumers.forEach(KafkaConsumer::close);
        }
    }

    private static KafkaConsumer<byte[], byte[]> assigned(
        String bootstrap, String topic, int partitions
    ) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("enable.auto.commit", "false");
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
            properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        List<TopicPartition> all = new ArrayList<>();
        for (int partition = 0; partition < partitions; partition++) {
            all.add(new TopicPartition(topic, partition));
        }
        consumer.assign(all);
        consumer.seekToBeginning(all);
        return consumer;
    }

    private static long read(KafkaConsumer<byte[], byte[]> consumer, long records) {
        long seen = 0;
        long bytes = 0;
        long lastSeen = System.nanoTime();
        while (seen < records) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                seen += 1;
                bytes += record.value().length;
                lastSeen = System.nanoTime();
            }
            if (System.nanoTime() - lastSeen > SILENCE_NS_MAX) {
                throw new IllegalStateException("silence after " + seen + " records");
            }
        }
        return bytes;
    }
}
