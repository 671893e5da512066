import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Callable;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigsOptions;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreatePartitionsOptions;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;

/** Calls of Admin. */
final class AdminCalls {
    private final Calls all;
    private final Admin admin;
    private final String sent;
    private final String made;
    private final TopicPartition first;

    AdminCalls(Calls all) {
        this.all = all;
        admin = Admin.create(all.config("default.api.timeout.ms", 20_000, "request.timeout.ms", 15_000));
        sent = all.topic("sent");
        made = all.topic("made");
        first = new TopicPartition(sent, 0);
    }

    private void call(String name, Callable<?> call) {
        all.calls.put("Admin." + name, call);
    }

    private int broker() throws Exception {
        return admin.describeCluster().nodes().get().iterator().next().id();
    }

    private TopicDescription described(String topic) throws Exception {
        return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
    }

    private String value(ConfigResource resource, String name) throws Exception {
        return admin.describeConfigs(List.of(resource)).all().get().get(resource).get(name).value();
    }

    /** Expect a value of a setting, once the broker has heard of it. */
    private Void has(ConfigResource resource, String name, String expected) throws Exception {
        for (int i = 0; i < 50 && !expected.equals(value(resource, name)); i++) {
            Thread.sleep(100);
        }
        return Calls.expect(expected.equals(value(resource, name)), value(resource, name));
    }

    private Void altered(ConfigResource resource, String name, String value, AlterConfigOp.OpType kind)
            throws Exception {
        AlterConfigOp change = new AlterConfigOp(new ConfigEntry(name, value), kind);
        return admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all().get();
    }

    /** Calls that make topics, which others use. */
    void topics() {
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, made);
        call("createTopics", () -> admin.createTopics(
            List.of(new NewTopic(sent, 2, (short) 1), new NewTopic(all.topic("txn"), 1, (short) 1))).all().get());
        call("createTopics configs", () -> admin.createTopics(List.of(new NewTopic(made, Optional.empty(),
            Optional.empty()).configs(Map.of("retention.ms", "3600000", "cleanup.policy", "compact")))).all().get());
        call("createTopics assignments", () -> admin.createTopics(List.of(
            new NewTopic(all.topic("assigned"), Map.of(0, List.of(broker()), 1, List.of(broker()))))).all().get());
        call("createTopics validateOnly", () -> {
            NewTopic none = new NewTopic(all.topic("none"), 1, (short) 1);
            admin.createTopics(List.of(none), new CreateTopicsOptions().validateOnly(true)).all().get();
            return Calls.expect(!admin.listTopics().names().get().contains(none.name()), none);
        });
        call("createTopics existing", () -> Calls.refused(() -> admin.createTopics(
            List.of(new NewTopic(sent, 1, (short) 1))).all().get(), "TopicExistsException"));
        call("listTopics", () -> Calls.expect(admin.listTopics().names().get().contains(sent), "topics"));
        call("describeTopics", () -> Calls.expect(described(sent).partitions().size() == 2, "partitions"));
        call("describeTopics by id", () -> {
            TopicCollection ids = TopicCollection.ofTopicIds(List.of(described(sent).topicId()));
            return Calls.expect(Calls.only(admin.describeTopics(ids).allTopicIds().get().values()).name().equals(sent),
                                "name");
        });
        call("describeTopics unknown", () -> Calls.refused(() -> described("unknown"),
                                                           "UnknownTopicOrPartitionException"));
        call("createPartitions", () -> {
            admin.createPartitions(Map.of(made, NewPartitions.increaseTo(3))).all().get();
            return Calls.expect(described(made).partitions().size() == 3, "partitions");
        });
        call("createPartitions validateOnly", () -> admin.createPartitions(Map.of(made, NewPartitions.increaseTo(4)),
            new CreatePartitionsOptions().validateOnly(true)).all().get());
        call("describeConfigs topic", () -> has(topic, "retention.ms", "3600000"));
        call("describeConfigs synonyms", () -> admin.describeConfigs(List.of(topic),
            new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true)).all().get());
        call("describeConfigs broker", () -> value(new ConfigResource(ConfigResource.Type.BROKER, broker() + ""),
                                                   "num.partitions"));
        call("describeConfigs logger", () -> admin.describeConfigs(List.of(
            new ConfigResource(ConfigResource.Type.BROKER_LOGGER, broker() + ""))).all().get());
        call("incrementalAlterConfigs set", () -> {
            altered(topic, "max.message.bytes", "2000000", AlterConfigOp.OpType.SET);
            return has(topic, "max.message.bytes", "2000000");
        });
        call("incrementalAlterConfigs append", () -> {
            altered(topic, "cleanup.policy", "delete", AlterConfigOp.OpType.APPEND);
            has(topic, "cleanup.policy", "compact,delete");
            return altered(topic, "cleanup.policy", "compact", AlterConfigOp.OpType.SUBTRACT);
        });
        call("incrementalAlterConfigs delete", () -> {
            altered(topic, "retention.ms", "", AlterConfigOp.OpType.DELETE);
            return has(topic, "retention.ms", "604800000");
        });
        call("incrementalAlterConfigs validateOnly", () -> admin.incrementalAlterConfigs(Map.of(topic, List.of(
            new AlterConfigOp(new ConfigEntry("retention.ms", "5"), AlterConfigOp.OpType.SET))),
            new AlterConfigsOptions().validateOnly(true)).all().get());
        call("incrementalAlterConfigs wrong", () -> Calls.refused(
            () -> altered(topic, "no.such", "1", AlterConfigOp.OpType.SET), "InvalidConfigurationException"));
        call("incrementalAlterConfigs broker", () -> altered(
            new ConfigResource(ConfigResource.Type.BROKER, broker() + ""), "log.cleaner.threads", "2",
            AlterConfigOp.OpType.SET));
        call("incrementalAlterConfigs brokers", () -> altered(
            new ConfigResource(ConfigResource.Type.BROKER, ""), "log.retention.ms", "600000000",
            AlterConfigOp.OpType.SET));
        call("incrementalAlterConfigs group", () -> altered(
            new ConfigResource(ConfigResource.Type.GROUP, all.run), "consumer.session.timeout.ms", "50000",
            AlterConfigOp.OpType.SET));
        call("listConfigResources", () -> admin.listConfigResources().all().get());
        call("describeCluster", () -> Calls.expect(admin.describeCluster().controller().get() != null
                                                   && admin.describeCluster().clusterId().get() != null, "cluster"));
        call("describeCluster fenced", () -> admin.describeCluster(
            new DescribeClusterOptions().includeFencedBrokers(true)).nodes().get());
        call("describeFeatures", () -> Calls.expect(
            admin.describeFeatures().featureMetadata().get().finalizedFeatures().containsKey("transaction.version"),
            "features"));
    }

    /** Calls about what producers and consumers have left. */
    void others() {
        String classic = all.run + "-classic";
        call("listTopics internal", () -> Calls.expect(admin.listTopics(new ListTopicsOptions().listInternal(true))
            .names().get().contains("__consumer_offsets"), "no offsets topic"));
        call("describeTopics internal", () -> Calls.expect(described("__consumer_offsets").isInternal(), "external"));
        Map<String, OffsetSpec> specs = Map.of("earliest", OffsetSpec.earliest(), "latest", OffsetSpec.latest(),
            "timestamp", OffsetSpec.forTimestamp(1), "maxTimestamp", OffsetSpec.maxTimestamp(),
            "earliestLocal", OffsetSpec.earliestLocal(), "latestTiered", OffsetSpec.latestTiered());
        specs.keySet().stream().sorted().forEach(name -> call("listOffsets " + name,
            () -> admin.listOffsets(Map.of(first, specs.get(name))).all().get()));
        call("deleteRecords", () -> {
            admin.deleteRecords(Map.of(first, RecordsToDelete.beforeOffset(3))).all().get();
            return Calls.expect(
                admin.listOffsets(Map.of(first, OffsetSpec.earliest())).all().get().get(first).offset() == 3, "offset");
        });
        call("describeLogDirs", () -> Calls.only(admin.describeLogDirs(List.of(broker())).allDescriptions().get()
            .values()).values().iterator().next().replicaInfos().get(first).size());
        call("describeReplicaLogDirs", () -> admin.describeReplicaLogDirs(
            List.of(new TopicPartitionReplica(sent, 0, broker()))).all().get());
        call("alterReplicaLogDirs", () -> {
            String folder = admin.describeLogDirs(List.of(broker())).allDescriptions().get().get(broker()).keySet()
                .iterator().next();
            return admin.alterReplicaLogDirs(Map.of(new TopicPartitionReplica(sent, 0, broker()), folder)).all().get();
        });
        call("listGroups", () -> Calls.expect(admin.listGroups().all().get().stream()
            .anyMatch(group -> group.groupId().equals(classic)), "no group"));
        call("listConsumerGroups", () -> Calls.expect(admin.listConsumerGroups().all().get().stream()
            .anyMatch(group -> group.groupId().equals(classic)), "no group"));
        for (String group : List.of(classic, all.run + "-consumer")) {
            String protocol = group.substring(all.run.length() + 1);
            call("describeConsumerGroups " + protocol, () -> Calls.expect(
                admin.describeConsumerGroups(List.of(group)).all().get().get(group).members().isEmpty(), group));
        }
        call("describeConsumerGroups members", () -> {
            String group = all.run + "-members";
            try (KafkaConsumer<String, String> consumer = all.consuming("group.id", group)) {
                consumer.subscribe(List.of(sent));
                Calls.read(consumer, 1);
                return Calls.expect(Calls.only(admin.describeConsumerGroups(List.of(group)).all().get().get(group)
                    .members()).assignment().topicPartitions().size() == 2, group);
            }
        });
        call("describeClassicGroups", () -> admin.describeClassicGroups(List.of(classic)).all().get());
        call("listConsumerGroupOffsets", () -> Calls.expect(admin.listConsumerGroupOffsets(
            Map.of(classic, new ListConsumerGroupOffsetsSpec())).all().get().get(classic).containsKey(first), classic));
        call("alterConsumerGroupOffsets", () -> admin.alterConsumerGroupOffsets(
            classic, Map.of(first, new OffsetAndMetadata(2))).all().get());
        call("deleteConsumerGroupOffsets", () -> admin.deleteConsumerGroupOffsets(classic, Set.of(first)).all().get());
        call("removeMembersFromConsumerGroup", () -> admin.removeMembersFromConsumerGroup(
            all.run + "-static", new RemoveMembersFromConsumerGroupOptions()).all().get());
        call("deleteConsumerGroups", () -> admin.deleteConsumerGroups(List.of(classic)).all().get());
        call("electLeaders", () -> admin.electLeaders(ElectionType.PREFERRED, Set.of(first)).partitions().get());
        call("listPartitionReassignments", () -> admin.listPartitionReassignments().reassignments().get());
        call("alterPartitionReassignments", () -> admin.alterPartitionReassignments(
            Map.of(first, Optional.of(new NewPartitionReassignment(List.of(broker()))))).all().get());
        call("describeProducers", () -> admin.describeProducers(List.of(first)).all().get());
        call("listTransactions", () -> Calls.expect(admin.listTransactions().all().get().stream()
            .anyMatch(each -> each.transactionalId().equals(all.run)), "no transaction"));
        call("describeTransactions", () -> admin.describeTransactions(List.of(all.run)).all().get());
        call("fenceProducers", () -> admin.fenceProducers(List.of(all.run + "-fenced")).all().get());
        call("abortTransaction", this::aborted);
        call("updateFeatures validateOnly", () -> admin.updateFeatures(
            Map.of("transaction.version", new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.SAFE_DOWNGRADE)),
            new UpdateFeaturesOptions().validateOnly(true)).all().get());
        call("describeMetadataQuorum", () -> Calls.expect(
            !admin.describeMetadataQuorum().quorumInfo().get().voters().isEmpty(), "no voters"));
        call("describeClientQuotas", () -> admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get());
        call("alterClientQuotas", () -> admin.alterClientQuotas(List.of(new ClientQuotaAlteration(
            new ClientQuotaEntity(Map.of("client-id", all.run)),
            List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1e9))))).all().get());
        call("describeUserScramCredentials", () -> admin.describeUserScramCredentials().all().get());
        call("alterUserScramCredentials", () -> admin.alterUserScramCredentials(List.of(
            new UserScramCredentialUpsertion("user", new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096),
                                             "word"))).all().get());
        AclBinding acl = new AclBinding(new ResourcePattern(ResourceType.TOPIC, sent, PatternType.LITERAL),
            new AccessControlEntry("User:a", "*", AclOperation.READ, AclPermissionType.ALLOW));
        call("createAcls", () -> admin.createAcls(List.of(acl)).all().get());
        call("describeAcls", () -> admin.describeAcls(AclBindingFilter.ANY).values().get());
        call("deleteAcls", () -> admin.deleteAcls(List.of(acl.toFilter())).all().get());
        call("createDelegationToken", () -> admin.createDelegationToken().delegationToken().get());
        call("describeDelegationToken", () -> admin.describeDelegationToken().delegationTokens().get());
        call("deleteTopics", () -> admin.deleteTopics(List.of(made)).all().get());
        call("deleteTopics by id", () -> admin.deleteTopics(
            TopicCollection.ofTopicIds(List.of(described(sent).topicId()))).all().get());
    }

    private Void aborted() throws Exception {
        TopicPartition partition = new TopicPartition(all.topic("txn"), 0);
        try (KafkaProducer<String, String> producer = all.producing("transactional.id", all.run + "-hangs")) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(partition.topic(), 0, "k", "open")).get();
            var state = admin.describeProducers(List.of(partition)).partitionResult(partition).get().activeProducers()
                .stream().filter(each -> each.currentTransactionStartOffset().isPresent()).findFirst().orElseThrow();
            return admin.abortTransaction(new AbortTransactionSpec(partition, state.producerId(),
                (short) state.producerEpoch(), state.coordinatorEpoch().orElse(0))).all().get();
        }
    }
}
