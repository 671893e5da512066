import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;

/** Features of the Java client: a name on stdin, one line of JSON on stdout. The only argument is where brokers are. */
public final class Features {
    static final Duration WAIT = Duration.ofSeconds(20);
    final String servers;

    Features(String servers) {
        this.servers = servers;
    }

    public static void main(String[] args) throws Exception {
        Features features = new Features(args[0]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String error = "";
            try {
                features.run(line.trim().split(" "));
            } catch (Exception | AssertionError problem) {
                error = problem + (problem.getCause() == null ? "" : ", caused by " + problem.getCause());
            }
            System.out.printf("{\"feature\": \"%s\", \"error\": \"%s\"}%n", line.trim(), escaped(error));
        }
    }

    static String escaped(String text) {
        return text.replace("\\", "\\\\").replace("\"", "\\\"").replaceAll("\\s+", " ");
    }

    void run(String[] words) throws Exception {
        switch (words[0]) {
            case "produce": produce(); break;
            case "group": group(); break;
            case "commit": commit(); break;
            case "abort": abort(); break;
            case "offsets": offsets(); break;
            case "fencing": fencing(); break;
            case "retries": retries(); break;
            case "load": new Load(servers, words[1], words[2], words[3]).run(); break;
            default: throw new AssertionError("no feature of this client");
        }
    }

    KafkaProducer<String, String> producer(String transactionalId) {
        Properties settings = new Properties();
        settings.putAll(Map.of("bootstrap.servers", servers, "request.timeout.ms", "3000",
            "delivery.timeout.ms", "20000", "linger.ms", "0",
            "key.serializer", "org.apache.kafka.common.serialization.StringSerializer",
            "value.serializer", "org.apache.kafka.common.serialization.StringSerializer"));
        if (transactionalId != null) {
            settings.put("transactional.id", transactionalId);
        }
        KafkaProducer<String, String> made = new KafkaProducer<>(settings);
        if (transactionalId != null) {
            made.initTransactions();
        }
        return made;
    }

    KafkaConsumer<String, String> consumer(String group, String isolation) {
        Properties settings = new Properties();
        settings.putAll(Map.of("bootstrap.servers", servers, "group.id", group, "isolation.level", isolation,
            "auto.offset.reset", "earliest", "enable.auto.commit", "false",
            "key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer",
            "value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer"));
        return new KafkaConsumer<>(settings);
    }

    /** What is read from a topic's first partition up to where it ended when reading began. */
    List<String> read(String topic, String isolation) {
        TopicPartition partition = new TopicPartition(topic, 0);
        List<String> values = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = consumer("reads", isolation)) {
            consumer.assign(Set.of(partition));
            consumer.seekToBeginning(Set.of(partition));
            long end = consumer.endOffsets(Set.of(partition)).get(partition);
            long until = System.nanoTime() + WAIT.toNanos();
            while (consumer.position(partition) < end && System.nanoTime() < until) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
                    values.add(record.value());
                }
            }
        }
        return values;
    }

    static void same(Object expected, Object found) {
        if (!expected.equals(found)) {
            throw new AssertionError("expected " + expected + ", found " + found);
        }
    }

    static ProducerRecord<String, String> record(String topic, String value) {
        return new ProducerRecord<>(topic, 0, null, value);
    }

    void produce() throws Exception {
        List<Future<RecordMetadata>> answers = new ArrayList<>();
        try (KafkaProducer<String, String> producer = producer(null)) {
            for (String value : Arrays.asList("a", "b", "c")) {
                answers.add(producer.send(record("java-produce", value)));
            }
            for (int place = 0; place < 3; place++) {
                same((long) place, answers.get(place).get().offset());
            }
        }
        same(Arrays.asList("a", "b", "c"), read("java-produce", "read_uncommitted"));
    }

    void group() throws Exception {
        try (KafkaProducer<String, String> producer = producer(null)) {
            producer.send(record("java-group", "a")).get();
            same(Arrays.asList("a"), subscribed("java-group", 1));
            producer.send(record("java-group", "b")).get();
            same(Arrays.asList("b"), subscribed("java-group", 1));
        }
    }

    /** What a member of a group reads behind the group's offset; then it commits its position. */
    List<String> subscribed(String topic, int count) {
        List<String> values = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = consumer(topic, "read_committed")) {
            consumer.subscribe(List.of(topic));
            long until = System.nanoTime() + WAIT.toNanos();
            while (values.size() < count && System.nanoTime() < until) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
                    values.add(record.value());
                }
            }
            consumer.commitSync();
        }
        return values;
    }

    void commit() {
        try (KafkaProducer<String, String> producer = producer("java-commit")) {
            for (String value : Arrays.asList("a", "b")) {
                producer.beginTransaction();
                producer.send(record("java-commit", value));
                producer.commitTransaction();
            }
        }
        same(Arrays.asList("a", "b"), read("java-commit", "read_committed"));
    }

    void abort() {
        try (KafkaProducer<String, String> producer = producer("java-abort")) {
            producer.beginTransaction();
            producer.send(record("java-abort", "x"));
            producer.flush();
            producer.abortTransaction();
            producer.beginTransaction();
            producer.send(record("java-abort", "a"));
            producer.commitTransaction();
        }
        same(Arrays.asList("a"), read("java-abort", "read_committed"));
        same(Arrays.asList("x", "a"), read("java-abort", "read_uncommitted"));
    }

    void offsets() {
        TopicPartition partition = new TopicPartition("java-offsets", 0);
        try (KafkaProducer<String, String> producer = producer("java-offsets");
             KafkaConsumer<String, String> consumer = consumer("java-offsets", "read_committed")) {
            for (int offset : new int[] {1, 2}) {
                producer.beginTransaction();
                producer.send(record("java-offsets", "a"));
                producer.sendOffsetsToTransaction(
                    Map.of(partition, new OffsetAndMetadata(offset)), consumer.groupMetadata());
                if (offset == 1) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
            }
            same(1L, consumer.committed(Set.of(partition), WAIT).get(partition).offset());
        }
    }

    void fencing() {
        try (KafkaProducer<String, String> first = producer("java-fencing");
             KafkaProducer<String, String> second = producer("java-fencing")) {
            try {
                first.beginTransaction();
                first.send(record("java-fencing", "x"));
                first.commitTransaction();
            } catch (ProducerFencedException | InvalidProducerEpochException expected) {
                second.beginTransaction();
                second.send(record("java-fencing", "a"));
                second.commitTransaction();
                same(Arrays.asList("a"), read("java-fencing", "read_committed"));
                return;
            }
        }
        throw new AssertionError("the first producer was not fenced");
    }

    /** Whoever calls this lets brokers fail meanwhile. */
    void retries() throws Exception {
        List<String> values = new ArrayList<>();
        try (KafkaProducer<String, String> producer = producer("java-retries")) {
            for (int number = 0; number < 12; number++) {
                producer.beginTransaction();
                producer.send(record("java-retries", "" + number));
                if (number % 3 == 2) {
                    producer.flush();
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                    values.add("" + number);
                }
                Thread.sleep(50);
            }
        }
        same(values, read("java-retries", "read_committed"));
    }
}
