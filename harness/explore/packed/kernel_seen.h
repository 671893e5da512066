/* The states that were seen: in the order of their discovery, and a table of their numbers (or of their fingerprints).
   One thread alone uses them. */

#ifndef KERNEL_SEEN_H
#define KERNEL_SEEN_H

#include "kernel_tables.h"

#define SOON 200000             /* more states than Python lets come before it looks at the memory again, as a rule */

/* What the states will soon take at once: their arrays are copied into larger ones. */
static u64 bytes_soon(const Kernel *k)
{
    u64 table = (k->limit + 1) * sizeof(u64), states = k->states.room * sizeof(Bits);
    return ((k->distinct + SOON) * 3 > k->limit * 2 ? 2 * table : 0)
        + (k->states.count + SOON > k->states.room ? states + states / 2 : 0);
}

/* The place of a hash is its highest bits; an entry has the 28 bits below the highest eight, and a number, or is the
   hash as a whole. Hence a table that grows is read and written from one end to the other. */
#define TOP 8
#define TAG 28

static inline u64 seen_place(const Kernel *k, u64 hash) { return hash >> (64 - k->bits); }
static inline u64 seen_tag(u64 hash) { return hash << TOP & ~NUMBER; }
static inline u64 seen_mark(u64 hash) { return hash ? hash : 1; }

static inline u64 seen_entry(const Kernel *k, u64 hash, u64 number)
{
    return k->fingerprints ? seen_mark(hash) : seen_tag(hash) | (number + 1);
}

static inline void seen_enter(u64 *seen, u64 limit, u64 place, u64 entry, u64 *furthest)
{
    u64 at = place;
    while (seen[at]) at = (at + 1) & limit;
    if (((at - place) & limit) > *furthest) *furthest = (at - place) & limit;
    seen[at] = entry;
}

/* The place of an entry in a table of one bit more. It stands at most `furthest` behind its own place. */
static inline u64 wider_place(const Kernel *k, u64 at, u64 entry)
{
    if (k->fingerprints) return entry >> (63 - k->bits);
    u32 below = k->bits - TOP;
    u64 tag = entry >> (64 - TAG), top = at >> below;
    if ((top << below | tag >> (TAG - below)) > at) top = (top - 1) & ((1u << TOP) - 1);
    return top << (below + 1) | tag >> (TAG - below - 1);
}

static int seen_grow(Kernel *k)
{
    u64 size = (k->limit + 1) * 2, furthest = 0, begin = 0;
    u64 *wide = calloc(size, sizeof(u64));
    if (!wide) return NO_MEMORY;
    if (k->fingerprints || (k->bits < TOP + TAG && k->bits > TOP && k->furthest >> (k->bits - TOP) == 0)) {
        while (k->seen[begin]) begin++;     /* where no entry stands that belongs before it */
        for (u64 n = 0; n <= k->limit; n++) {
            u64 at = (begin + n) & k->limit, entry = k->seen[at];
            if (entry) seen_enter(wide, size - 1, wider_place(k, at, entry), entry, &furthest);
        }
    } else {
        for (u64 n = 0; n < k->states.count; n++) {
            u64 hash = mix(k->states.at[n]);
            seen_enter(wide, size - 1, hash >> (63 - k->bits), seen_tag(hash) | (n + 1), &furthest);
        }
    }
    free(k->seen);
    k->seen = wide;
    k->limit = size - 1;
    k->bits++;
    k->furthest = furthest;
    return OK;
}

static inline int is_at(const Kernel *k, u64 entry, Bits state, u64 hash)
{
    if (k->fingerprints) return entry == seen_mark(hash);
    return (entry & ~NUMBER) == seen_tag(hash) && same(k->states.at[(entry & NUMBER) - 1], state);
}

/* The entry of a state, or 0 where it is not among the seen ones. */
static inline u64 seen_get(const Kernel *k, Bits state, u64 hash)
{
    u64 at = seen_place(k, hash), entry;
    while ((entry = k->seen[at]) && !is_at(k, entry, state, hash))
        at = (at + 1) & k->limit;
    return entry;
}

static inline void seen_fetch(const Kernel *k, u64 hash) { __builtin_prefetch(&k->seen[seen_place(k, hash)]); }

static inline int keep(Kernel *k, Bits state)
{
    if (k->states.count == k->states.room && ROOM(k->states, 1)) return NO_MEMORY;
    k->states.at[k->states.count++] = state;
    k->distinct++;
    return OK;
}

/* Put a state among the seen ones: 1 if it is new, 0 if not, less where that cannot be. */
static inline int seen_put(Kernel *k, Bits state, u64 hash)
{
    int failed;
    if (k->distinct * 3 > k->limit * 2 && (failed = seen_grow(k))) return failed;
    if (seen_get(k, state, hash)) return 0;
    if ((failed = keep(k, state))) return failed;
    seen_enter(k->seen, k->limit, seen_place(k, hash), seen_entry(k, hash, k->states.count - 1), &k->furthest);
    return 1;
}

#endif
