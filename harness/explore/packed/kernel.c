/* The inner loop of the exhaustive search: states of some 64-bit words, looked up in tables that Python fills on demand.

   A state is one integer. A look-up maps `state & mask` to an entry: edges (a difference to add, and channels whose
   difference depends on their own bits), answers of checks, and look-ups in which to look further. What is missing is
   asked for by a callback, before anything of that state counts, so that an error leaves no state half expanded.
   States are kept in the order of their discovery; the table of seen states holds their numbers and some bits of
   their hash. Compiled without Python's headers, used through ctypes. */

#include "kernel_threads.h"

#define SOON 200000             /* more states than Python lets come before it looks at the memory again, as a rule */
#define FEW 20                  /* one in so many states may lack something: else threads do not pay */

/* ---- the states seen ---- */

/* What the states will soon take at once: their arrays are copied into larger ones. */
static u64 bytes_soon(const Kernel *k)
{
    u64 table = (k->limit + 1) * sizeof(u64), states = k->states.room * sizeof(Bits);
    return ((k->distinct + SOON) * 3 > k->limit * 2 ? 2 * table : 0)
        + (k->states.count + SOON > k->states.room ? states + states / 2 : 0);
}

static int seen_grow(Kernel *k)
{
    u64 size = (k->limit + 1) * 2;
    u64 *wide = calloc(size, sizeof(u64));
    if (!wide) return NO_MEMORY;
    u64 limit = size - 1;
    if (k->fingerprints) {
        for (u64 i = 0; i <= k->limit; i++) {
            u64 entry = k->seen[i];
            if (!entry) continue;
            u64 at = entry & limit;
            while (wide[at]) at = (at + 1) & limit;
            wide[at] = entry;
        }
    } else {
        for (u64 n = 0; n < k->states.count; n++) {
            u64 hash = mix(k->states.at[n]), at = hash & limit;
            while (wide[at]) at = (at + 1) & limit;
            wide[at] = (hash >> 40) << 40 | (n + 1);
        }
    }
    free(k->seen);
    k->seen = wide;
    k->limit = limit;
    return OK;
}

/* The number of a state, or NUMBER where it is not among the seen ones. Exact states only. */
static inline u64 seen_get(const Kernel *k, Bits state, u64 hash)
{
    u64 at = hash & k->limit, entry, tag = hash >> 40;
    while ((entry = k->seen[at])) {
        if (entry >> 40 == tag && same(k->states.at[(entry & NUMBER) - 1], state)) return (entry & NUMBER) - 1;
        at = (at + 1) & k->limit;
    }
    return NUMBER;
}

static inline int keep(Kernel *k, Bits state)
{
    if (k->states.count == k->states.room) {
            if (ROOM(k->states, 1)) return NO_MEMORY;
    }
    k->states.at[k->states.count++] = state;
    k->distinct++;
    return OK;
}

/* Put a state among the seen ones: 1 if it is new, 0 if not, less where that cannot be. */
static inline int seen_put(Kernel *k, Bits state, u64 hash)
{
    int failed;
    if (k->distinct * 3 > k->limit * 2 && (failed = seen_grow(k))) return failed;
    if (k->fingerprints) {
        u64 mark = hash ? hash : 1, at = mark & k->limit, entry;
        while ((entry = k->seen[at])) {
            if (entry == mark) return 0;
            at = (at + 1) & k->limit;
        }
        if ((failed = keep(k, state))) return failed;
        k->seen[at] = mark;
        return 1;
    }
    u64 at = hash & k->limit, entry, tag = hash >> 40;
    while ((entry = k->seen[at])) {
        if (entry >> 40 == tag && same(k->states.at[(entry & NUMBER) - 1], state)) return 0;
        at = (at + 1) & k->limit;
    }
    if ((failed = keep(k, state))) return failed;
    k->seen[at] = tag << 40 | k->states.count;
    return 1;
}

/* ---- expanding ---- */

static int commit(Kernel *k)
{
    for (u64 i = 0; i < k->pending.count; i++) {
        Pending *p = &k->pending.at[i];
        int new = seen_put(k, p->after, p->hash);
        if (new < 0) return new;
    }
    k->pending.count = 0;
    return OK;
}

/* Add states that are known: the initial ones, or those of a search that is resumed. */
API int kernel_seed(Kernel *k, const u64 *states, u64 number)
{
    for (u64 n = 0; n < number; n++) {
        Bits state = bits_of(states + WORDS * n);
        int new = seen_put(k, state, mix(state));
        if (new < 0) return new;
    }
    return OK;
}

/* Take what was found of a state: count, note answers, and put its successors among those to be seen. */
static int take(Kernel *k, u64 number, Bits state, const u32 *met, u64 count, const Successor *after, u64 successors)
{
    int any = 0;
    for (u64 m = 0; m < count; m++) {
        const Entry *found = &k->entries.at[met[m]];
        k->hits.at[met[m]]++;
        k->generated += found->ways;
        any |= found->edges != found->edges_end;
        if (found->answers) {
            if (ROOM(k->events, 1)) return NO_MEMORY;
            k->events.at[k->events.count++] = (Event){ number, met[m], 0 };
        }
    }
    if (ROOM(k->pending, successors)) return NO_MEMORY;
    for (u64 i = 0; i < successors; i++) {
        Bits next = after[i].after;
        if (after[i].outside) {
            if (map_get(&k->outside_map, next) != NONE) continue;
            if (map_put(&k->outside_map, next, 0) || ROOM(k->outside, 1)) return NO_MEMORY;
            k->outside.at[k->outside.count++] = next;
        } else if (!same(next, state)) {
            __builtin_prefetch(&k->seen[after[i].hash & k->limit]);
            k->pending.at[k->pending.count++] = (Pending){ next, after[i].hash };
        }
    }
    if (!any && k->deadlocks) {
        if (ROOM(k->events, 1)) return NO_MEMORY;
        k->events.at[k->events.count++] = (Event){ number, NONE, 0 };
    }
    return k->pending.count >= 32 ? commit(k) : OK;
}

/* Expand one state, asking for what is missing. */
static int expand_one(Kernel *k, u64 number)
{
    int failed;
    Bits state = k->states.at[number];
    Looker *l = look_at(k, state, &failed);
    if (failed) return failed;
    return take(k, number, state, l->met.at, l->met.count, l->after.at, l->after.count);
}

/* Take the states of a batch in their order; those that lack something are looked up anew. */
static int expand_batch(Kernel *k, Batch *batch, u64 *begin)
{
    int failed;
    for (u64 i = 0; i < batch->count; i++, ++*begin) {
        const Found *found = &batch->found[i];
        const Looker *l = &batch->lookers[found->who];
        failed = found->code ? expand_one(k, *begin) : take(
            k, *begin, batch->states[i], l->met.at + found->met, found->met_end - found->met,
            l->after.at + found->after, found->after_end - found->after);
        if (failed) return failed;
    }
    return OK;
}

static u64 lacking_in(const Batch *batch)
{
    u64 count = 0;
    for (u64 i = 0; i < batch->count; i++) count += batch->found[i].code != OK;
    return count;
}

/* Expand with several threads, until too much is missing for it to pay. While one batch is taken, the next one is
   looked up, unless something is missing: then Python will change the tables. */
static int expand_together(Kernel *k, u64 *begin, u64 end)
{
    if (!k->pool && !(k->pool = pool_new(k))) return NO_MEMORY;
    Pool *pool = k->pool;
    Batch *now = pool->batch[0], *next = pool->batch[1];
    batch_begin(pool, now, *begin, end);
    batch_end(pool, now);
    for (;;) {
        u64 after = now->first + now->count, lacks = lacking_in(now);
        k->together += now->count - lacks;
        k->calm = lacks * FEW <= now->count;
        int goes_on = after < end && k->calm;
        if (goes_on && !lacks) batch_begin(pool, next, after, end);
        int failed = expand_batch(k, now, begin);
        if (failed) {
            if (goes_on && !lacks) batch_drop(pool, next);
            return failed;
        }
        if (!goes_on) return OK;
        if (lacks) batch_begin(pool, next, after, end);
        batch_end(pool, next);
        Batch *done = now;
        now = next;
        next = done;
    }
}

/* Expand the states from *begin up to end (numbers among those kept); *begin is where it stopped. */
API int kernel_expand(Kernel *k, u64 *begin, u64 end)
{
    int failed = OK;
    u64 size = k->size_of_batch;
    while (*begin < end && !failed) {
        if (k->threads > 1 && k->calm && *begin + 2 * size < end) {
            failed = expand_together(k, begin, end);
            continue;
        }
        u64 missed = k->misses, upto = *begin + size < end ? *begin + size : end;
        while (*begin < upto && !(failed = expand_one(k, *begin))) ++*begin;
        k->calm = (k->misses - missed) * FEW <= size;
    }
    int also = commit(k);
    return also ? also : failed;
}

/* Which of some states have one of the targets among their successors. */
API int64_t kernel_sources(Kernel *k, const u64 *targets, u64 count, const u64 *states, u64 number, u64 *sources)
{
    Map map = { NULL, 0, 0 };
    int64_t found = 0;
    for (u64 i = 0; i < count; i++)
        if (map_put(&map, bits_of(targets + WORDS * i), 0)) { map_clear(&map); return NO_MEMORY; }
    for (u64 n = 0; n < number; n++) {
        int failed;
        Looker *l = look_at(k, bits_of(states + WORDS * n), &failed);
        if (failed) { map_clear(&map); return FAILED; }
        for (u64 i = 0; i < l->after.count; i++)
            if (map_get(&map, l->after.at[i].after) != NONE) { sources[found++] = n; break; }
    }
    map_clear(&map);
    return found;
}

/* The edges of the states from begin to end as three lists: from, to, and the number of the edge. */
API int64_t kernel_graph(Kernel *k, u64 begin, u64 end, int32_t *from, int32_t *to, int32_t *label, u64 room)
{
    u64 count = 0;
    for (u64 n = begin; n < end; n++) {
        int failed;
        Looker *l = look_at(k, k->states.at[n], &failed);
        if (failed) return FAILED;
        u64 i = 0;
        for (u64 m = 0; m < l->met.count; m++)
            for (u32 e = k->entries.at[l->met.at[m]].edges; e < k->entries.at[l->met.at[m]].edges_end; e++, i++) {
                u64 number = seen_get(k, l->after.at[i].after, l->after.at[i].hash);
                if (number == NUMBER) continue;
                if (count == room) return LIMIT;
                from[count] = (int32_t)n;
                to[count] = (int32_t)number;
                label[count++] = (int32_t)e;
            }
    }
    return (int64_t)count;
}

API void kernel_free(Kernel *k)
{
    forget_tables(k);
    map_clear(&k->outside_map);
    looker_free(&k->looker);
    pool_free(k->pool);
    free(k->look_ups.at); free(k->entries.at); free(k->hits.at); free(k->edges.at); free(k->links.at);
    free(k->channels.at); free(k->roots.at); free(k->orbits.at); free(k->images.at); free(k->states.at);
    free(k->events.at); free(k->outside.at); free(k->pending.at); free(k->seen);
    free(k);
}

/* ---- reading ---- */

API void kernel_counts(const Kernel *k, u64 *counts)
{
    counts[0] = k->states.count;
    counts[1] = k->distinct;
    counts[2] = k->generated;
    counts[3] = k->events.count;
    counts[4] = k->outside.count;
    counts[5] = k->entries.count;
    counts[6] = bytes_soon(k);
    counts[7] = k->together;
}

API void kernel_read(const Kernel *k, u64 begin, u64 end, u64 *out)
{
    memcpy(out, k->states.at + begin, (end - begin) * sizeof(Bits));
}

API void kernel_read_outside(const Kernel *k, u64 *out)
{
    memcpy(out, k->outside.at, k->outside.count * sizeof(Bits));
}

API void kernel_read_events(Kernel *k, u64 *out)
{
    memcpy(out, k->events.at, k->events.count * sizeof(Event));
    k->events.count = 0;
}

API void kernel_add_generated(Kernel *k, u64 more) { k->generated += more; }

/* Forget the first states (with fingerprints only): what is seen stays seen. */
API void kernel_drop(Kernel *k, u64 number)
{
    memmove(k->states.at, k->states.at + number, (k->states.count - number) * sizeof(Bits));
    k->states.count -= number;
}

/* Note that a state is seen, where it is known that it is not yet: with its number, or by its fingerprint. */
static void mark(Kernel *k, Bits state, u64 number)
{
    u64 hash = mix(state), entry = hash >> 40 << 40 | (number + 1);
    if (k->fingerprints) entry = hash = hash ? hash : 1;
    u64 at = hash & k->limit;
    while (k->seen[at] && !(k->fingerprints && k->seen[at] == entry)) at = (at + 1) & k->limit;
    k->seen[at] = entry;
}

static Bits moved(Bits state, const u32 *from, const u64 *low, const u32 *to, u64 fields)
{
    Bits after = bits_none();
    for (u64 i = 0; i < fields; i++) after = sum(after, bits_from(bits_at(state, from[i]) & low[i], to[i]));
    return after;
}

/* Pack all states anew: field i moves from one shift to another. Tables are forgotten, counts and states stay. */
API int kernel_repack(Kernel *k, const u32 *from, const u64 *low, const u32 *to, u64 fields)
{
    forget_tables(k);
    memset(k->seen, 0, (k->limit + 1) * sizeof(u64));
    for (u64 n = 0; n < k->states.count; n++) {
        k->states.at[n] = moved(k->states.at[n], from, low, to, fields);
        mark(k, k->states.at[n], n);
    }
    map_clear(&k->outside_map);
    for (u64 n = 0; n < k->outside.count; n++) {
        k->outside.at[n] = moved(k->outside.at[n], from, low, to, fields);
        if (map_put(&k->outside_map, k->outside.at[n], 0)) return NO_MEMORY;
    }
    return OK;
}

/* The same for states that are not kept (with fingerprints only). */
API void kernel_repack_dropped(
    Kernel *k, u64 *states, u64 number, const u32 *from, const u64 *low, const u32 *to, u64 fields)
{
    for (u64 n = 0; n < number; n++) {
        Bits state = moved(bits_of(states + WORDS * n), from, low, to, fields);
        mark(k, state, 0);
        words_of(state, states + WORDS * n);
    }
}
