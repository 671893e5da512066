package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const topic, partitions = "load", 2

// load runs transactions for some seconds, drawn from a seed, as an application does that goes on whatever happens.
func load(servers []string, seconds, seed, pause string) error {
	var numbers [3]int64
	for place, text := range []string{seconds, seed, pause} {
		number, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return err
		}
		numbers[place] = number
	}
	until := time.Now().Add(time.Duration(numbers[0]) * time.Second)
	chance, counts := rand.New(rand.NewSource(numbers[1])), map[string]int{}
	reader, err := client(servers, topic, kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumePartitions(
		map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart(), 1: kgo.NewOffset().AtStart()}}))
	if err != nil {
		return err
	}
	defer reader.Close()
	var cl *kgo.Client
	for time.Now().Before(until) {
		if cl == nil {
			if cl, err = client(servers, topic, kgo.TransactionalID("app"), kgo.TransactionTimeout(wait),
				kgo.RequestTimeoutOverhead(time.Second), kgo.RecordDeliveryTimeout(5*time.Second)); err != nil {
				return err
			}
			counts["producers"]++
		}
		if err := cl.BeginTransaction(); err != nil { // the client has given its producer up, and needs another one
			counts[kind(err)]++
			cl.Close()
			cl = nil
		} else if err := drawn(cl, chance, counts); err != nil {
			counts[kind(err)]++
			if aborted(cl) {
				counts["aborted after an error"]++
			} else {
				cl.Close()
				cl = nil
			}
		}
		counts["read"] += polled(reader)
		time.Sleep(time.Duration(numbers[2]) * time.Millisecond)
	}
	if cl != nil {
		cl.Close()
	}
	said, err := json.Marshal(counts)
	fmt.Fprintf(os.Stdout, "{\"counts\": %q}\n", said)
	return err
}

// drawn runs one transaction, which has begun.
func drawn(cl *kgo.Client, chance *rand.Rand, counts map[string]int) error {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	records, commits := 1+chance.Intn(3), chance.Intn(3) > 0
	var first error
	for range records {
		each := &kgo.Record{Value: []byte("v"), Partition: int32(chance.Intn(partitions))}
		cl.Produce(ctx, each, func(_ *kgo.Record, err error) {
			if err != nil {
				first = err
			}
		})
		if chance.Intn(2) == 0 {
			if err := cl.Flush(ctx); err != nil {
				return err
			}
		}
	}
	if err := cl.Flush(ctx); err != nil {
		return err
	}
	if first != nil {
		return first
	}
	if err := cl.EndTransaction(ctx, kgo.TransactionEndTry(commits)); err != nil {
		return err
	}
	if commits {
		counts["committed"]++
	} else {
		counts["aborted"]++
	}
	return nil
}

// aborted says whether a client can go on behind a transaction that failed.
func aborted(cl *kgo.Client) bool {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	return cl.AbortBufferedRecords(ctx) == nil && cl.EndTransaction(ctx, kgo.TryAbort) == nil
}

func polled(reader *kgo.Client) int {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	return reader.PollFetches(ctx).NumRecords()
}

func kind(err error) string {
	var known *kerr.Error
	if errors.As(err, &known) {
		return known.Message
	}
	return err.Error()
}
