import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;

/** Transactions for some seconds, drawn from a seed, as an application makes them that goes on whatever happens. */
final class Load {
    static final String TOPIC = "load";
    static final int PARTITIONS = 2;
    final String servers;
    final long until;
    final Random chance;
    final long pauseMs;
    final Map<String, Integer> counts = new TreeMap<>();
    KafkaProducer<String, String> producer;
    KafkaConsumer<String, String> reader;
    int offset = 0;

    Load(String servers, String seconds, String seed, String pauseMs) {
        this.servers = servers;
        this.until = System.nanoTime() + Duration.ofSeconds(Long.parseLong(seconds)).toNanos();
        this.chance = new Random(Long.parseLong(seed));
        this.pauseMs = Long.parseLong(pauseMs);
    }

    void run() throws InterruptedException {
        reader = reader();
        while (System.nanoTime() < until) {
            try {
                if (producer == null) {
                    producer = producer();
                    producer.initTransactions();
                    count("producers");
                }
                transaction();
            } catch (KafkaException problem) {
                count(problem.getClass().getSimpleName());
                if (!aborted()) {
                    producer.close(Duration.ZERO);
                    producer = null;
                }
            }
            count("read", reader.poll(Duration.ZERO).count());
            Thread.sleep(pauseMs);
        }
        if (producer != null) {
            producer.close(Duration.ofSeconds(5));
        }
        reader.close();
        System.out.println("{\"counts\": \"" + counts + "\"}");
    }

    void transaction() {
        producer.beginTransaction();
        int records = 1 + chance.nextInt(3);
        boolean commits = chance.nextInt(3) > 0;
        for (int number = 0; number < records; number++) {
            producer.send(new ProducerRecord<>(TOPIC, chance.nextInt(PARTITIONS), null, "v"));
            if (chance.nextInt(2) == 0) {
                producer.flush();
            }
        }
        if (chance.nextInt(4) == 0) {
            producer.sendOffsetsToTransaction(
                Map.of(new TopicPartition(TOPIC, 0), new OffsetAndMetadata(++offset)), new ConsumerGroupMetadata("load"));
        }
        if (commits) {
            commit();
        } else {
            producer.flush();
            producer.abortTransaction();
            count("aborted");
        }
    }

    /** As the documentation of KafkaProducer says, a commit that timed out is asked for again. */
    void commit() {
        for (int again = 0; ; again++) {
            try {
                producer.commitTransaction();
                count("committed");
                return;
            } catch (TimeoutException problem) {
                count("commits that timed out");
                if (again == 3) {
                    throw problem;
                }
            }
        }
    }

    /** Says whether the producer can go on behind a transaction that failed. */
    boolean aborted() {
        try {
            producer.abortTransaction();
            count("aborted after an error");
            return true;
        } catch (KafkaException problem) {
            count("closed for " + problem.getClass().getSimpleName());
            return false;
        }
    }

    void count(String what) {
        count(what, 1);
    }

    void count(String what, int more) {
        counts.merge(what, more, Integer::sum);
    }

    KafkaProducer<String, String> producer() {
        Properties settings = new Properties();
        settings.putAll(Map.of("bootstrap.servers", servers, "transactional.id", "app", "request.timeout.ms", "1000",
            "delivery.timeout.ms", "5000", "max.block.ms", "10000", "linger.ms", "0", "transaction.timeout.ms", "20000",
            "key.serializer", "org.apache.kafka.common.serialization.StringSerializer",
            "value.serializer", "org.apache.kafka.common.serialization.StringSerializer"));
        return new KafkaProducer<>(settings);
    }

    KafkaConsumer<String, String> reader() {
        Properties settings = new Properties();
        settings.putAll(Map.of("bootstrap.servers", servers, "isolation.level", "read_committed",
            "auto.offset.reset", "earliest", "enable.auto.commit", "false", "request.timeout.ms", "2000",
            "key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer",
            "value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer"));
        KafkaConsumer<String, String> made = new KafkaConsumer<>(settings);
        made.assign(Set.of(new TopicPartition(TOPIC, 0), new TopicPartition(TOPIC, 1)));
        return made;
    }
}
