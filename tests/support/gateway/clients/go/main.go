// Features of franz-go: a name on stdin, one line of JSON on stdout. The only argument is where brokers are.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const wait = 20 * time.Second

var features = map[string]func(context.Context, []string) error{
	"produce": produce, "group": group, "commit": commit, "abort": abort, "offsets": offsets, "fencing": fencing,
	"retries": retries,
}

func main() {
	servers := strings.Split(os.Args[1], ",")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		said := map[string]string{"feature": lines.Text(), "error": ""}
		ctx, cancel := context.WithTimeout(context.Background(), 2*wait)
		var err error
		if words[0] == "load" {
			err = load(servers, words[1], words[2], words[3])
		} else if feature, known := features[words[0]]; known {
			err = feature(ctx, servers)
		} else {
			err = errors.New("no feature of this client")
		}
		cancel()
		if err != nil {
			said["error"] = err.Error()
		}
		if err := json.NewEncoder(os.Stdout).Encode(said); err != nil {
			panic(err)
		}
	}
}

func client(servers []string, topic string, more ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(servers...), kgo.DefaultProduceTopic(topic), kgo.AllowAutoTopicCreation(),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RequestTimeoutOverhead(3 * time.Second),
		kgo.ProducerLinger(0),
	}, more...)...)
}

func record(value string) *kgo.Record {
	return &kgo.Record{Value: []byte(value)}
}

func same[T any](expected, found T) error {
	if wanted, got := fmt.Sprint(expected), fmt.Sprint(found); wanted != got {
		return fmt.Errorf("expected %s, found %s", wanted, got)
	}
	return nil
}

// read returns what a topic's first partition has, up to a record with the value "end" that is written first.
func read(ctx context.Context, servers []string, topic string, isolation kgo.IsolationLevel) ([]string, error) {
	cl, err := client(servers, topic, kgo.FetchIsolationLevel(isolation), kgo.FetchMaxWait(200*time.Millisecond),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	end := record(fmt.Sprint("end ", time.Now().UnixNano()))
	if err := cl.ProduceSync(ctx, end).FirstErr(); err != nil {
		return nil, err
	}
	var values []string
	for !slices.Contains(values, string(end.Value)) {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return values, err
		}
		fetches.EachRecord(func(each *kgo.Record) { values = append(values, string(each.Value)) })
	}
	return slices.DeleteFunc(values, func(value string) bool { return strings.HasPrefix(value, "end ") }), nil
}

func reads(ctx context.Context, servers []string, topic string, isolation kgo.IsolationLevel, expected ...string) error {
	values, err := read(ctx, servers, topic, isolation)
	if err != nil {
		return err
	}
	return same(expected, values)
}

func produce(ctx context.Context, servers []string) error {
	cl, err := client(servers, "go-produce")
	if err != nil {
		return err
	}
	defer cl.Close()
	for offset, value := range []string{"a", "b", "c"} {
		one, err := cl.ProduceSync(ctx, record(value)).First()
		if err != nil {
			return err
		}
		if err := same(int64(offset), one.Offset); err != nil {
			return err
		}
	}
	return reads(ctx, servers, "go-produce", kgo.ReadUncommitted(), "a", "b", "c")
}

func group(ctx context.Context, servers []string) error {
	for _, value := range []string{"a", "b"} {
		cl, err := client(servers, "go-group", kgo.ConsumerGroup("go-group"), kgo.ConsumeTopics("go-group"),
			kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
			kgo.FetchMaxWait(200*time.Millisecond))
		if err != nil {
			return err
		}
		defer cl.Close()
		if err := cl.ProduceSync(ctx, record(value)).FirstErr(); err != nil {
			return err
		}
		var values []string
		for len(values) == 0 {
			fetches := cl.PollFetches(ctx)
			if err := ctx.Err(); err != nil {
				return err
			}
			fetches.EachRecord(func(each *kgo.Record) { values = append(values, string(each.Value)) })
		}
		if err := same([]string{value}, values); err != nil {
			return err
		}
		if err := cl.CommitUncommittedOffsets(ctx); err != nil {
			return err
		}
		cl.Close()
	}
	return nil
}

// transaction writes one record and ends.
func transaction(ctx context.Context, cl *kgo.Client, value string, end kgo.TransactionEndTry) error {
	if err := cl.BeginTransaction(); err != nil {
		return err
	}
	if err := cl.ProduceSync(ctx, record(value)).FirstErr(); err != nil {
		return errors.Join(err, cl.EndTransaction(ctx, kgo.TryAbort))
	}
	return cl.EndTransaction(ctx, end)
}

func commit(ctx context.Context, servers []string) error {
	cl, err := client(servers, "go-commit", kgo.TransactionalID("go-commit"))
	if err != nil {
		return err
	}
	defer cl.Close()
	for _, value := range []string{"a", "b"} {
		if err := transaction(ctx, cl, value, kgo.TryCommit); err != nil {
			return err
		}
	}
	return reads(ctx, servers, "go-commit", kgo.ReadCommitted(), "a", "b")
}

func abort(ctx context.Context, servers []string) error {
	cl, err := client(servers, "go-abort", kgo.TransactionalID("go-abort"))
	if err != nil {
		return err
	}
	defer cl.Close()
	if err := transaction(ctx, cl, "x", kgo.TryAbort); err != nil {
		return err
	}
	if err := transaction(ctx, cl, "a", kgo.TryCommit); err != nil {
		return err
	}
	if err := reads(ctx, servers, "go-abort", kgo.ReadCommitted(), "a"); err != nil {
		return err
	}
	return reads(ctx, servers, "go-abort", kgo.ReadUncommitted(), "x", "a")
}

// offsets reads "a" and "b" in transactions of a group: the first is aborted, so that both are read again.
func offsets(ctx context.Context, servers []string) error {
	cl, err := client(servers, "go-offsets")
	if err != nil {
		return err
	}
	defer cl.Close()
	if err := cl.ProduceSync(ctx, record("a"), record("b")).FirstErr(); err != nil {
		return err
	}
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(servers...), kgo.TransactionalID("go-offsets"), kgo.ConsumerGroup("go-offsets"),
		kgo.ConsumeTopics("go-offsets"), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.AllowAutoTopicCreation(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.RequireStableFetchOffsets(),
		kgo.FetchMaxWait(200*time.Millisecond), kgo.DefaultProduceTopic("go-offsets-out"),
		kgo.RequestTimeoutOverhead(3*time.Second))
	if err != nil {
		return err
	}
	defer session.Close()
	for _, end := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
		if err := copied(ctx, session, end); err != nil {
			return err
		}
	}
	if err := reads(ctx, servers, "go-offsets-out", kgo.ReadCommitted(), "a", "b"); err != nil {
		return err
	}
	if found := session.Client().CommittedOffsets()["go-offsets"][0].Offset; found != 2 {
		return fmt.Errorf("expected that offset 2 is committed, found %d", found)
	}
	return nil
}

// copied writes the two records that it reads to another topic.
func copied(ctx context.Context, session *kgo.GroupTransactSession, end kgo.TransactionEndTry) error {
	if err := session.Begin(); err != nil {
		return err
	}
	for count := 0; count < 2; {
		fetches := session.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		for _, each := range fetches.Records() {
			count++
			if err := session.ProduceSync(ctx, record(string(each.Value))).FirstErr(); err != nil {
				return err
			}
		}
	}
	committed, err := session.End(ctx, end)
	if err != nil {
		return err
	}
	return same(bool(end), committed)
}

func fencing(ctx context.Context, servers []string) error {
	var two [2]*kgo.Client
	for place := range two {
		cl, err := client(servers, "go-fencing", kgo.TransactionalID("go-fencing"))
		if err != nil {
			return err
		}
		defer cl.Close()
		if _, _, err := cl.ProducerID(ctx); err != nil {
			return err
		}
		two[place] = cl
	}
	err := transaction(ctx, two[0], "x", kgo.TryCommit)
	if !errors.Is(err, kerr.ProducerFenced) && !errors.Is(err, kerr.InvalidProducerEpoch) {
		return fmt.Errorf("the first producer was not fenced: %v", err)
	}
	if err := transaction(ctx, two[1], "a", kgo.TryCommit); err != nil {
		return err
	}
	return reads(ctx, servers, "go-fencing", kgo.ReadCommitted(), "a")
}

// retries runs while whoever asks for it lets brokers fail.
func retries(ctx context.Context, servers []string) error {
	cl, err := client(servers, "go-retries", kgo.TransactionalID("go-retries"))
	if err != nil {
		return err
	}
	defer cl.Close()
	var values []string
	for number := range 12 {
		end := kgo.TransactionEndTry(number%3 != 2)
		if err := transaction(ctx, cl, fmt.Sprint(number), end); err != nil {
			return err
		}
		if end == kgo.TryCommit {
			values = append(values, fmt.Sprint(number))
		}
		time.Sleep(50 * time.Millisecond)
	}
	return reads(ctx, servers, "go-retries", kgo.ReadCommitted(), values...)
}
