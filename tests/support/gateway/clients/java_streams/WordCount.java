import java.nio.file.Files;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Produced;

/** Applications of Kafka Streams with exactly-once, EOS v2: how each ended, as Go's tests print it. */
public final class WordCount {
    static final int LINES = 500;
    static final Map<String, Long> EXPECTED = Map.of("all", (long) LINES, "even", LINES / 2L, "odd", LINES / 2L);
    final String run = "words-" + System.nanoTime();
    final String servers;

    WordCount(String servers) {
        this.servers = servers;
    }

    /** The argument is where brokers are. */
    public static void main(String[] args) throws Exception {
        for (boolean restarts : new boolean[] {false, true}) {
            String name = restarts ? "word count, restarted" : "word count";
            System.out.println("=== RUN   " + name);
            try {
                Map<String, Long> found = new WordCount(args[0]).counted(restarts);
                System.out.println("    " + found);
                System.out.println("--- " + (found.equals(EXPECTED) ? "PASS" : "FAIL") + ": " + name);
            } catch (Exception problem) {
                System.out.println("    " + problem + "\n--- FAIL: " + name);
            }
        }
        System.exit(0);
    }

    /** Count words, and return the counts that a reader of committed records sees. */
    Map<String, Long> counted(boolean restarts) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", servers))) {
            admin.createTopics(List.of(new NewTopic(run + "-lines", 2, (short) -1),
                                       new NewTopic(run + "-counts", 1, (short) -1))).all().get();
        }
        KafkaStreams streams = started();
        produce(0, LINES / 2);
        if (restarts) {
            Thread.sleep(3_000);
            streams.close(Duration.ofSeconds(20));
            streams = started();
        }
        produce(LINES / 2, LINES);
        try {
            return read();
        } finally {
            streams.close(Duration.ofSeconds(20));
        }
    }

    KafkaStreams started() throws Exception {
        Properties config = new Properties();
        config.putAll(Map.of("application.id", run, "bootstrap.servers", servers, "commit.interval.ms", "200",
            "processing.guarantee", "exactly_once_v2", "state.dir", Files.createTempDirectory("streams").toString()));
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(run + "-lines", Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count().toStream().to(run + "-counts", Produced.with(Serdes.String(), Serdes.Long()));
        KafkaStreams streams = new KafkaStreams(builder.build(), config);
        streams.start();
        return streams;
    }

    void produce(int from, int to) {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(
                 Map.of("bootstrap.servers", servers), new StringSerializer(), new StringSerializer())) {
            for (int i = from; i < to; i++) {
                producer.send(new ProducerRecord<>(run + "-lines", "k" + i, "all " + (i % 2 == 0 ? "even" : "odd")));
            }
        }
    }

    Map<String, Long> read() {
        Map<String, Long> found = new HashMap<>();
        try (KafkaConsumer<String, Long> consumer = new KafkaConsumer<>(
                 Map.of("bootstrap.servers", servers, "isolation.level", "read_committed"),
                 new StringDeserializer(), new LongDeserializer())) {
            List<TopicPartition> partitions = List.of(new TopicPartition(run + "-counts", 0));
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            long until = System.nanoTime() + Duration.ofSeconds(45).toNanos();
            while (!found.equals(EXPECTED) && System.nanoTime() < until) {
                consumer.poll(Duration.ofMillis(200)).forEach(record -> found.put(record.key(), record.value()));
            }
        }
        return found;
    }
}
