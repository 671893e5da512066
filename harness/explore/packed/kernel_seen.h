/* The states that were seen: in the order of their discovery, and tables of their numbers (or of their fingerprints).

   The tables are shards by the highest bits of the hash, one for each thread. Whoever has taken a shard alone uses it. */

#ifndef KERNEL_SEEN_H
#define KERNEL_SEEN_H

#include "kernel_tables.h"

#define SOON 200000             /* more states than Python lets come before it looks at the memory again, as a rule */
#define AT_ONCE 32              /* states of which the places are fetched before the first of them is looked at */

static inline Shard *shard_of(Kernel *k, u64 hash) { return &k->shards[(u128)hash * k->threads >> 64]; }

/* The hash within a shard: what of it does not tell the shard. */
static inline u64 rest_of(const Kernel *k, u64 hash) { return hash * k->threads; }

static inline int is_short(const Shard *shard, u64 more) { return (shard->count + more) * 3 > shard->limit * 2; }

/* What the states will soon take at once: their arrays are copied into larger ones. */
static u64 bytes_soon(const Kernel *k)
{
    u64 states = k->states.room * sizeof(Bits), sum = 0;
    for (u32 s = 0; s < k->threads; s++)
        if (is_short(&k->shards[s], SOON / k->threads)) sum += 2 * (k->shards[s].limit + 1) * sizeof(u64);
    return sum + (k->states.count + SOON > k->states.room ? states + states / 2 : 0);
}

/* The place of a hash is its highest bits; an entry has the 28 bits below the highest eight, and a number, or is the
   hash as a whole. Hence a table that grows is read and written from one end to the other. */
#define TOP 8
#define TAG 28

static inline u64 seen_place(const Shard *shard, u64 rest) { return rest >> (64 - shard->bits); }
static inline u64 seen_tag(u64 rest) { return rest << TOP & ~NUMBER; }
static inline u64 seen_mark(u64 rest) { return rest ? rest : 1; }

static inline u64 seen_entry(const Kernel *k, u64 rest, u64 number)
{
    return k->fingerprints ? seen_mark(rest) : seen_tag(rest) | (number + 1);
}

static inline u64 seen_enter(u64 *seen, u64 limit, u64 place, u64 entry, u64 *furthest)
{
    u64 at = place;
    while (seen[at]) at = (at + 1) & limit;
    if (((at - place) & limit) > *furthest) *furthest = (at - place) & limit;
    seen[at] = entry;
    return at;
}

/* The place of an entry in a table of one bit more. It stands at most `furthest` behind its own place. */
static inline u64 wider_place(const Kernel *k, const Shard *shard, u64 at, u64 entry)
{
    if (k->fingerprints) return entry >> (63 - shard->bits);
    u32 below = shard->bits - TOP;
    u64 tag = entry >> (64 - TAG), top = at >> below;
    if ((top << below | tag >> (TAG - below)) > at) top = (top - 1) & ((1u << TOP) - 1);
    return top << (below + 1) | tag >> (TAG - below - 1);
}

/* Write to the pages from a place on: one that is read first is given a page of zeros, and another one when written. */
#define PAGE 512                /* entries, at most */
static inline void touch(u64 *seen, u64 limit, u64 at)
{
    for (u64 page = 0; page < 2; page++)
        __atomic_fetch_or(&seen[(at + page * PAGE) & limit], 0, __ATOMIC_RELAXED);
}

static int shard_grow(Kernel *k, Shard *shard)
{
    u64 size = (shard->limit + 1) * 2, furthest = 0, begin = 0;
    u64 *wide = calloc(size, sizeof(u64));
    if (!wide) return NO_MEMORY;
    if (k->fingerprints
        || (shard->bits < TOP + TAG && shard->bits > TOP && shard->furthest >> (shard->bits - TOP) == 0)) {
        while (shard->seen[begin]) begin++;     /* where no entry stands that belongs before it */
        for (u64 n = 0; n <= shard->limit; n++) {
            u64 at = (begin + n) & shard->limit, entry = shard->seen[at];
            if (n == 0 || at % (PAGE / 2) == 0) touch(wide, size - 1, 2 * at);
            if (entry) seen_enter(wide, size - 1, wider_place(k, shard, at, entry), entry, &furthest);
        }
    } else {
        for (u64 n = 0; n < k->states.count; n++) {
            u64 hash = mix(k->states.at[n]), rest = rest_of(k, hash);
            if (shard_of(k, hash) != shard) continue;
            seen_enter(wide, size - 1, rest >> (63 - shard->bits), seen_tag(rest) | (n + 1), &furthest);
        }
    }
    free(shard->seen);
    shard->seen = wide;
    shard->limit = size - 1;
    shard->bits++;
    shard->furthest = furthest;
    return OK;
}

static inline int is_at(const Kernel *k, u64 entry, Bits state, u64 rest)
{
    if (k->fingerprints) return entry == seen_mark(rest);
    return (entry & ~NUMBER) == seen_tag(rest) && same(k->states.at[(entry & NUMBER) - 1], state);
}

/* The entry of a state, or 0 where it is not among the seen ones. */
static inline u64 seen_get(const Kernel *k, const Shard *shard, Bits state, u64 rest)
{
    u64 at = seen_place(shard, rest), entry;
    while ((entry = shard->seen[at]) && !is_at(k, entry, state, rest))
        at = (at + 1) & shard->limit;
    return entry;
}

static inline void seen_fetch(const Shard *shard, u64 rest)
{
    __builtin_prefetch(&shard->seen[seen_place(shard, rest)]);
}

/* Fetch the state with which one will be compared, as a rule: the place itself was fetched before. */
static inline void seen_fetch_state(const Kernel *k, const Shard *shard, u64 rest)
{
    u64 entry = shard->seen[seen_place(shard, rest)];
    if (!k->fingerprints && entry && (entry & ~NUMBER) == seen_tag(rest))
        __builtin_prefetch(&k->states.at[(entry & NUMBER) - 1]);
}

/* Put a state among the seen ones by a number, at which it is kept already; return where it is, or NO_PLACE. */
#define NO_PLACE (~0ull)
static inline u64 seen_put(const Kernel *k, Shard *shard, Bits state, u64 rest, u64 number)
{
    u64 place = seen_place(shard, rest), at = place, entry;
    while ((entry = shard->seen[at])) {
        if (is_at(k, entry, state, rest)) return NO_PLACE;
        at = (at + 1) & shard->limit;
    }
    if (((at - place) & shard->limit) > shard->furthest) shard->furthest = (at - place) & shard->limit;
    shard->seen[at] = seen_entry(k, rest, number);
    shard->count++;
    return at;
}

static void shards_free(Kernel *k)
{
    for (u32 s = 0; k->shards && s < k->threads; s++) {
        free(k->shards[s].seen);
        free(k->shards[s].fresh.at);
        free(k->shards[s].marks.at);
    }
    free(k->shards);
}

static int shards_new(Kernel *k)
{
    if (!(k->shards = calloc(k->threads, sizeof(Shard)))) return NO_MEMORY;
    for (u32 s = 0; s < k->threads; s++) {
        Shard *shard = &k->shards[s];
        shard->bits = 12;
        shard->limit = (1u << shard->bits) - 1;
        if (!(shard->seen = calloc(shard->limit + 1, sizeof(u64)))) return NO_MEMORY;
    }
    return OK;
}

#endif
