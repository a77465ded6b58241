// Functions of Apache Kafka's group coordinator, called directly: one question per line of JSON on
// standard input, one answer per line on standard output.
//
// Where a function goes through a collection whose order is not fixed, it gets one that is ordered,
// so that its answers can be compared: members in the order of the question, and the topics and
// partitions of an assignment in ascending order.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

public class Oracle {
    static final ObjectMapper JSON = new ObjectMapper();
    static final Map<String, ConsumerGroupPartitionAssignor> ASSIGNORS =
        Map.of("uniform", new UniformAssignor(), "range", new RangeAssignor());

    public static void main(String[] args) throws Exception {
        BufferedReader input = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonNode question = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer(question, answer);
            } catch (Throwable failure) {
                answer.put("error", failure.toString());
            }
            System.out.println(JSON.writeValueAsString(answer));
        }
    }

    static void answer(JsonNode question, ObjectNode answer) {
        switch (question.get("ask").asText()) {
            case "assign": answer.set("owners", assign(question)); break;
            case "partition_for": answer.put("partition", partitionFor(question)); break;
            case "topic_hash": answer.put("hash", topicHash(question)); break;
            case "group_hash": answer.put("hash", groupHash(question)); break;
            default: throw new IllegalArgumentException("unknown question");
        }
    }

    // The owner of every partition of every topic: an index into the members, or -1.
    static ArrayNode assign(JsonNode question) {
        List<Uuid> topicIds = new ArrayList<>();
        for (JsonNode id : question.get("topic_ids")) topicIds.add(uuid(id.asText()));
        Map<Uuid, Integer> partitionCounts = new HashMap<>();
        for (int topic = 0; topic < topicIds.size(); topic++) {
            partitionCounts.put(topicIds.get(topic), question.get("partition_counts").get(topic).asInt());
        }

        Map<String, MemberSubscriptionAndAssignmentImpl> members = new LinkedHashMap<>();
        Map<Uuid, Map<Integer, String>> inverted = new HashMap<>();
        Set<Set<Uuid>> subscriptions = new LinkedHashSet<>();
        for (JsonNode member : question.get("members")) {
            String memberId = member.get("member_id").asText();
            Set<Uuid> subscribed = new LinkedHashSet<>();
            for (JsonNode topic : member.get("topics")) subscribed.add(topicIds.get(topic.asInt()));
            subscriptions.add(subscribed);
            Map<Uuid, Set<Integer>> assigned = new LinkedHashMap<>();
            for (JsonNode entry : member.get("assigned")) {
                Uuid topicId = topicIds.get(entry.get(0).asInt());
                Set<Integer> partitions = new TreeSet<>();
                for (JsonNode partition : entry.get(1)) {
                    partitions.add(partition.asInt());
                    inverted.computeIfAbsent(topicId, __ -> new HashMap<>())
                        .put(partition.asInt(), memberId);
                }
                assigned.put(topicId, partitions);
            }
            members.put(memberId, new MemberSubscriptionAndAssignmentImpl(
                Optional.ofNullable(text(member.get("rack_id"))),
                Optional.ofNullable(text(member.get("instance_id"))),
                subscribed, new Assignment(assigned)));
        }

        GroupAssignment target = ASSIGNORS.get(question.get("assignor").asText()).assign(
            new GroupSpecImpl(members, subscriptions.size() > 1
                ? SubscriptionType.HETEROGENEOUS : SubscriptionType.HOMOGENEOUS, inverted),
            new SubscribedTopicDescriber() {
                public int numPartitions(Uuid topicId) {
                    return partitionCounts.get(topicId);
                }

                public Set<String> racksForPartition(Uuid topicId, int partition) {
                    return Set.of("rack-" + partition % 2);
                }
            });
        return owners(target, new ArrayList<>(members.keySet()), topicIds, partitionCounts);
    }

    static ArrayNode owners(GroupAssignment target, List<String> memberIds, List<Uuid> topicIds,
            Map<Uuid, Integer> partitionCounts) {
        Map<Uuid, int[]> owners = new HashMap<>();
        partitionCounts.forEach((id, count) -> {
            owners.put(id, new int[count]);
            java.util.Arrays.fill(owners.get(id), -1);
        });
        target.members().forEach((memberId, assignment) ->
            assignment.partitions().forEach((id, partitions) -> partitions.forEach(partition -> {
                if (owners.get(id)[partition] != -1) throw new IllegalStateException("two owners");
                owners.get(id)[partition] = memberIds.indexOf(memberId);
            })));
        ArrayNode all = JSON.createArrayNode();
        for (Uuid id : topicIds) {
            ArrayNode ofTopic = all.addArray();
            for (int owner : owners.get(id)) ofTopic.add(owner);
        }
        return all;
    }

    static int partitionFor(JsonNode question) {
        return Utils.abs(question.get("key").asText().hashCode())
            % question.get("partition_count").asInt();
    }

    static long topicHash(JsonNode question) {
        String name = question.get("name").asText();
        CoordinatorMetadataImage.TopicMetadata topic = new CoordinatorMetadataImage.TopicMetadata() {
            public String name() {
                return name;
            }

            public Uuid id() {
                return uuid(question.get("topic_id").asText());
            }

            public int partitionCount() {
                return question.get("racks").size();
            }

            public List<String> partitionRacks(int partition) {
                List<String> racks = new ArrayList<>();
                for (JsonNode rack : question.get("racks").get(partition)) racks.add(rack.asText());
                return racks;
            }
        };
        // The function asks for this one topic, by name, and for nothing else.
        CoordinatorMetadataImage image = (CoordinatorMetadataImage) Proxy.newProxyInstance(
            Oracle.class.getClassLoader(), new Class<?>[] {CoordinatorMetadataImage.class},
            (proxy, method, arguments) -> Optional.of(topic));
        return org.apache.kafka.coordinator.group.Utils.computeTopicHash(name, image);
    }

    static long groupHash(JsonNode question) {
        Map<String, Long> topicHashes = new HashMap<>();
        question.get("topic_hashes").properties().forEach(
            entry -> topicHashes.put(entry.getKey(), entry.getValue().asLong()));
        return org.apache.kafka.coordinator.group.Utils.computeGroupHash(topicHashes);
    }

    static Uuid uuid(String text) {
        UUID id = UUID.fromString(text);
        return new Uuid(id.getMostSignificantBits(), id.getLeastSignificantBits());
    }

    static String text(JsonNode node) {
        return node == null || node.isNull() ? null : node.asText();
    }
}
