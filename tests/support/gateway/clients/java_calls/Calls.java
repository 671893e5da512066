import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Calls of Kafka's Java clients, one after the other: how each ended, as Go's tests print it. */
public final class Calls {
    static final Duration WAIT = Duration.ofSeconds(10);
    static final int LONGEST_SECONDS = 45;
    final Map<String, Callable<?>> calls = new LinkedHashMap<>();
    final String servers;
    final String run = "calls-" + System.nanoTime();
    KafkaProducer<String, String> transactional;

    Calls(String servers) {
        this.servers = servers;
    }

    /** Arguments: where brokers are, and a regular expression for names of calls. */
    public static void main(String[] args) throws Exception {
        Calls all = new Calls(args[0]);
        AdminCalls admin = new AdminCalls(all);
        admin.topics();
        all.producer();
        all.consumer();
        admin.others();
        Pattern only = Pattern.compile(args.length > 1 ? args[1] : "");
        ExecutorService thread = Executors.newCachedThreadPool();
        for (Map.Entry<String, Callable<?>> call : all.calls.entrySet()) {
            if (!only.matcher(call.getKey()).find()) {
                continue;
            }
            System.out.println("=== RUN   " + call.getKey());
            Future<?> result = thread.submit(call.getValue());
            try {
                result.get(LONGEST_SECONDS, TimeUnit.SECONDS);
                System.out.println("--- PASS: " + call.getKey());
            } catch (Exception problem) {
                result.cancel(true);
                Throwable cause = problem;
                while (cause instanceof ExecutionException && cause.getCause() != null) {
                    cause = cause.getCause();
                }
                System.out.println("    " + cause);
                System.out.println("--- FAIL: " + call.getKey());
            }
        }
        System.exit(0);
    }

    static Void expect(boolean holds, Object found) {
        if (!holds) {
            throw new AssertionError("not expected: " + found);
        }
        return null;
    }

    /** Expect that a call fails with an exception of this name. */
    static Void refused(Callable<?> call, String... exceptions) {
        Throwable problem = null;
        try {
            call.call();
        } catch (Throwable found) {
            problem = found;
            while (problem.getCause() != null && !List.of(exceptions).contains(problem.getClass().getSimpleName())) {
                problem = problem.getCause();
            }
        }
        return expect(problem != null && List.of(exceptions).contains(problem.getClass().getSimpleName()), problem);
    }

    String topic(String name) {
        return run + "-" + name;
    }

    Map<String, Object> config(Object... pairs) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", servers));
        for (int i = 0; i < pairs.length; i += 2) {
            config.put((String) pairs[i], pairs[i + 1]);
        }
        return config;
    }

    KafkaProducer<String, String> producing(Object... pairs) {
        return new KafkaProducer<>(config(pairs), new StringSerializer(), new StringSerializer());
    }

    KafkaConsumer<String, String> consuming(Object... pairs) {
        Map<String, Object> config = config("auto.offset.reset", "earliest", "enable.auto.commit", "false");
        config.putAll(config(pairs));
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }

    /** Send records to a topic, and return where the last one went. */
    RecordMetadata sent(int records, String topic, Object... pairs) throws Exception {
        try (KafkaProducer<String, String> producer = producing(pairs)) {
            Future<RecordMetadata> last = null;
            for (int i = 0; i < records; i++) {
                last = producer.send(new ProducerRecord<>(topic, 0, "key", "value " + i));
            }
            producer.flush();
            return last.get();
        }
    }

    /** Poll until there are so many records, or it takes too long. */
    static List<ConsumerRecord<String, String>> read(KafkaConsumer<String, String> consumer, int records) {
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        long until = System.nanoTime() + WAIT.toNanos() * 2;
        while (found.size() < records && System.nanoTime() < until) {
            consumer.poll(Duration.ofMillis(200)).forEach(found::add);
        }
        expect(found.size() >= records, found.size() + " records");
        return found;
    }

    void producer() {
        String topic = topic("sent");
        for (String acks : List.of("0", "1", "all")) {
            calls.put("Producer.send acks=" + acks, () -> sent(10, topic, "acks", acks, "enable.idempotence", "false"));
        }
        calls.put("Producer.send idempotent", () -> {
            RecordMetadata last = sent(10, topic);
            return expect(last.hasOffset() && last.partition() == 0, last);
        });
        for (String codec : List.of("gzip", "snappy", "lz4", "zstd")) {
            calls.put("Producer.send compression=" + codec, () -> {
                sent(50, topic(codec), "compression.type", codec, "linger.ms", 50);
                try (KafkaConsumer<String, String> consumer = consuming()) {
                    consumer.assign(List.of(new TopicPartition(topic(codec), 0)));
                    return read(consumer, 50);
                }
            });
        }
        calls.put("Producer.send headers", () -> {
            try (KafkaProducer<String, String> producer = producing()) {
                ProducerRecord<String, String> record = new ProducerRecord<>(topic("headers"), null, 1234L, null, "v");
                record.headers().add("h", "x".getBytes(StandardCharsets.UTF_8)).add("none", null);
                producer.send(record).get();
            }
            try (KafkaConsumer<String, String> consumer = consuming()) {
                consumer.assign(List.of(new TopicPartition(topic("headers"), 0)));
                ConsumerRecord<String, String> found = read(consumer, 1).get(0);
                return expect(found.headers().toArray().length == 2 && found.timestamp() == 1234L, found);
            }
        });
        calls.put("Producer.send too large", () -> {
            try (KafkaProducer<String, String> producer = producing("max.request.size", 5_000_000)) {
                String large = "x".repeat(2_000_000);
                return refused(() -> producer.send(new ProducerRecord<>(topic, large)).get(), "RecordTooLargeException");
            }
        });
        calls.put("Producer.send invalid topic", () -> {
            try (KafkaProducer<String, String> producer = producing()) {
                return refused(() -> producer.send(new ProducerRecord<>("no/topic", "v")).get(),
                               "InvalidTopicException");
            }
        });
        calls.put("Producer.partitionsFor", () -> {
            try (KafkaProducer<String, String> producer = producing()) {
                return expect(producer.partitionsFor(topic).size() == 2, producer.partitionsFor(topic));
            }
        });
        calls.put("Producer.initTransactions", () -> {
            transactional = producing("transactional.id", run);
            transactional.initTransactions();
            return null;
        });
        calls.put("Producer.commitTransaction", () -> {
            transactional.beginTransaction();
            transactional.send(new ProducerRecord<>(topic("txn"), "committed"));
            transactional.commitTransaction();
            return null;
        });
        calls.put("Producer.abortTransaction", () -> {
            transactional.beginTransaction();
            transactional.send(new ProducerRecord<>(topic("txn"), "aborted")).get();
            transactional.abortTransaction();
            return null;
        });
        calls.put("Producer.sendOffsetsToTransaction", () -> {
            TopicPartition source = new TopicPartition(topic, 0);
            try (KafkaConsumer<String, String> consumer = consuming("group.id", run + "-txn")) {
                consumer.subscribe(List.of(topic));
                read(consumer, 1);
                transactional.beginTransaction();
                transactional.send(new ProducerRecord<>(topic("txn"), "with offsets"));
                transactional.sendOffsetsToTransaction(Map.of(source, new OffsetAndMetadata(7)),
                                                       consumer.groupMetadata());
                transactional.commitTransaction();
                return expect(consumer.committed(Set.of(source)).get(source).offset() == 7, source);
            }
        });
        calls.put("Producer fenced", () -> {
            try (KafkaProducer<String, String> other = producing("transactional.id", run)) {
                other.initTransactions();
            }
            transactional.beginTransaction();
            return refused(() -> {
                transactional.send(new ProducerRecord<>(topic("txn"), "late")).get();
                transactional.commitTransaction();
                return null;
            }, "ProducerFencedException", "InvalidProducerEpochException");
        });
    }

    void consumer() {
        String topic = topic("sent");
        TopicPartition first = new TopicPartition(topic, 0);
        for (String protocol : List.of("classic", "consumer")) {
            String group = run + "-" + protocol;
            calls.put("Consumer.subscribe " + protocol, () -> {
                try (KafkaConsumer<String, String> consumer = consuming("group.id", group, "group.protocol", protocol)) {
                    consumer.subscribe(List.of(topic));
                    read(consumer, 20);
                    consumer.commitSync();
                    return expect(consumer.committed(Set.of(first)).get(first).offset() >= 20, first);
                }
            });
        }
        calls.put("Consumer.subscribe pattern", () -> {
            try (KafkaConsumer<String, String> consumer = consuming("group.id", run + "-pattern")) {
                consumer.subscribe(Pattern.compile(run + "-s.*t"));
                return read(consumer, 20);
            }
        });
        calls.put("Consumer.subscribe SubscriptionPattern", () -> {
            try (KafkaConsumer<String, String> consumer =
                     consuming("group.id", run + "-re2j", "group.protocol", "consumer")) {
                consumer.subscribe(new SubscriptionPattern(run + "-s.*t"));
                return read(consumer, 20);
            }
        });
        calls.put("Consumer.subscribe static", () -> {
            for (int i = 0; i < 2; i++) {
                try (KafkaConsumer<String, String> consumer =
                         consuming("group.id", run + "-static", "group.instance.id", "i1")) {
                    consumer.subscribe(List.of(topic));
                    read(consumer, 1);
                }
            }
            return null;
        });
        calls.put("Consumer.subscribe cooperative", () -> {
            try (KafkaConsumer<String, String> consumer = consuming("group.id", run + "-sticky",
                     "partition.assignment.strategy", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor")) {
                consumer.subscribe(List.of(topic));
                return read(consumer, 20);
            }
        });
        calls.put("Consumer read_committed", () -> {
            try (KafkaConsumer<String, String> consumer = consuming("isolation.level", "read_committed")) {
                consumer.assign(List.of(new TopicPartition(topic("txn"), 0)));
                return expect(read(consumer, 2).stream().noneMatch(each -> each.value().equals("aborted")), "aborted");
            }
        });
        calls.put("Consumer.seek", () -> assigned(first, consumer -> {
            consumer.seek(first, 5);
            expect(read(consumer, 1).get(0).offset() == 5, "offset");
            consumer.seekToEnd(List.of(first));
            expect(consumer.position(first) >= 20, consumer.position(first));
            consumer.seekToBeginning(List.of(first));
            expect(consumer.position(first) == 0, consumer.position(first));
        }));
        calls.put("Consumer.pause", () -> assigned(first, consumer -> {
            consumer.pause(List.of(first));
            expect(consumer.poll(Duration.ofMillis(500)).isEmpty(), "records");
            consumer.resume(List.of(first));
            read(consumer, 20);
            expect(consumer.currentLag(first).isPresent(), "lag");
        }));
        calls.put("Consumer.beginningOffsets", () -> assigned(first, consumer ->
            expect(consumer.beginningOffsets(List.of(first)).get(first) == 0, "begin")));
        calls.put("Consumer.endOffsets", () -> assigned(first, consumer ->
            expect(consumer.endOffsets(List.of(first)).get(first) >= 20, "end")));
        calls.put("Consumer.offsetsForTimes", () -> assigned(first, consumer ->
            expect(consumer.offsetsForTimes(Map.of(first, 1L)).get(first).offset() == 0, "time")));
        calls.put("Consumer.listTopics", () -> assigned(first, consumer ->
            expect(consumer.listTopics().containsKey(topic), consumer.listTopics().keySet())));
        calls.put("Consumer.listTopics internal", () -> assigned(first, consumer ->
            expect(consumer.listTopics().containsKey("__consumer_offsets"), consumer.listTopics().keySet())));
        calls.put("Consumer.partitionsFor", () -> assigned(first, consumer ->
            expect(consumer.partitionsFor(topic).size() == 2, consumer.partitionsFor(topic))));
        calls.put("Consumer.commitSync metadata", () -> assigned(first, consumer -> {
            consumer.commitSync(Map.of(first, new OffsetAndMetadata(3, Optional.of(0), "noted")));
            OffsetAndMetadata found = consumer.committed(Set.of(first)).get(first);
            expect(found.metadata().equals("noted") && found.leaderEpoch().equals(Optional.of(0)), found);
        }));
        calls.put("Consumer.commitAsync", () -> assigned(first, consumer -> {
            CompletableFuture<Exception> done = new CompletableFuture<>();
            consumer.commitAsync(Map.of(first, new OffsetAndMetadata(4)), (offsets, problem) -> done.complete(problem));
            for (int i = 0; i < 50 && !done.isDone(); i++) {
                consumer.poll(Duration.ofMillis(100));
            }
            expect(done.isDone() && done.getNow(null) == null, done);
        }));
        calls.put("Consumer.enforceRebalance", () -> {
            try (KafkaConsumer<String, String> consumer = consuming("group.id", run + "-enforce")) {
                consumer.subscribe(List.of(topic));
                read(consumer, 1);
                int before = consumer.groupMetadata().generationId();
                consumer.enforceRebalance();
                for (int i = 0; i < 50 && consumer.groupMetadata().generationId() == before; i++) {
                    consumer.poll(Duration.ofMillis(100));
                }
                return expect(consumer.groupMetadata().generationId() > before, before);
            }
        });
        calls.put("Consumer.close remain", () -> {
            KafkaConsumer<String, String> consumer = consuming("group.id", run + "-remain");
            consumer.subscribe(List.of(topic));
            read(consumer, 1);
            consumer.close(CloseOptions.groupMembershipOperation(
                CloseOptions.GroupMembershipOperation.REMAIN_IN_GROUP).withTimeout(WAIT));
            return null;
        });
        calls.put("Consumer.seek out of range", () -> {
            try (KafkaConsumer<String, String> consumer = consuming("auto.offset.reset", "none")) {
                consumer.assign(List.of(first));
                consumer.seek(first, 99_999);
                return refused(() -> read(consumer, 1), "OffsetOutOfRangeException");
            }
        });
    }

    interface Use {
        void of(KafkaConsumer<String, String> consumer) throws Exception;
    }

    /** Use a consumer that has a partition without a group's doing. */
    Void assigned(TopicPartition partition, Use use) throws Exception {
        try (KafkaConsumer<String, String> consumer = consuming("group.id", run + "-assigned")) {
            consumer.assign(List.of(partition));
            use.of(consumer);
        }
        return null;
    }

    static <T> T only(Collection<T> all) {
        expect(all.size() == 1 && all.stream().noneMatch(Objects::isNull), all);
        return all.iterator().next();
    }
}
