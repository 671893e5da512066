/* The inner loop of the exhaustive search: states of some 64-bit words, looked up in tables that Python fills on demand.

   A state is one integer. A look-up maps `state & mask` to an entry: edges (a difference to add, and channels whose
   difference depends on their own bits), answers of checks, and look-ups in which to look further. What is missing is
   asked for by a callback, before anything of that state counts, so that an error leaves no state half expanded.
   States are kept in the order of their discovery; the table of seen states holds their numbers and some bits of
   their hash. Compiled without Python's headers, used through ctypes. */

#include "kernel_seen.h"
#include "kernel_threads.h"

#define FEW 20                  /* one in so many states may lack something: else threads do not pay */

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

/* Take what was found of a state: note answers, and put its successors among those to be seen. */
static int take(Kernel *k, u64 number, Bits state, const Found *found, const u32 *met, const Successor *after)
{
    for (u32 m = found->met; found->answers && m < found->met_end; m++) {
        if (!k->entries.at[met[m]].answers) continue;
        if (ROOM(k->events, 1)) return NO_MEMORY;
        k->events.at[k->events.count++] = (Event){ number, met[m], 0 };
    }
    if (ROOM(k->pending, found->after_end - found->after)) return NO_MEMORY;
    for (u32 i = found->after; i < found->after_end; i++) {
        Bits next = after[i].after;
        if (after[i].outside) {
            if (map_get(&k->outside_map, next) != NONE) continue;
            if (map_put(&k->outside_map, next, 0) || ROOM(k->outside, 1)) return NO_MEMORY;
            k->outside.at[k->outside.count++] = next;
        } else if (!same(next, state)) {
            seen_fetch(k, after[i].hash);
            k->pending.at[k->pending.count++] = (Pending){ next, after[i].hash };
        }
    }
    if (!found->leads && k->deadlocks) {
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
    Found found = { .met_end = (u32)l->met.count, .after_end = (u32)l->after.count };
    count_found(k, k->hits.at, &k->generated, l, &found, 1);
    return take(k, number, state, &found, l->met.at, l->after.at);
}

/* Take the states of a batch in their order; those that lack something are looked up anew. */
static int expand_batch(Kernel *k, Batch *batch, u64 *begin)
{
    int failed;
    for (u64 i = 0; i < batch->count; i++, ++*begin) {
        const Found *found = &batch->found[i];
        const Looker *l = &batch->lookers[found->who];
        failed = found->code ? expand_one(k, *begin)
            : take(k, *begin, batch->states[i], found, l->met.at, l->after.at);
        if (failed) {
            for (u64 n = 0; n < i; n++) batch->found[n].met_end = batch->found[n].met;  /* their counts stay */
            return failed;
        }
    }
    return OK;
}

static u64 lacking_in(const Batch *batch)
{
    u64 count = 0;
    for (u64 i = 0; i < batch->count; i++) count += batch->found[i].code != OK;
    return count;
}

/* Expand with several threads, until too much is missing for it to pay. While one batch is taken, the next ones are
   looked up, unless something is missing: then Python will change the tables. */
static int expand_together(Kernel *k, u64 *begin, u64 end)
{
    if (!k->pool && !(k->pool = pool_new(k))) return NO_MEMORY;
    Pool *pool = k->pool;
    u64 next = *begin;
    k->run++;
    pool_room(pool);
    for (;;) {
        while (k->calm && next < end && pool->begun - pool->over < DEPTH) next += batch_begin(pool, next, end);
        if (pool->over == pool->begun) return OK;
        Batch *now = batch_of(pool, pool->over);
        batch_end(pool, now);
        u64 lacks = lacking_in(now);
        k->together += now->count - lacks;
        k->calm = k->calm && lacks * FEW <= now->count;
        if (lacks) pool_rest(pool);
        int failed = expand_batch(k, now, begin);
        if (failed) {
            pool_drop(pool);
            return failed;
        }
        pool->over++;
        if (lacks) pool_room(pool);
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
                u64 entry = seen_get(k, l->after.at[i].after, l->after.at[i].hash);
                if (!entry) continue;
                if (count == room) return LIMIT;
                from[count] = (int32_t)n;
                to[count] = (int32_t)((entry & NUMBER) - 1);
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

API void kernel_hits(Kernel *k, u64 *hits)
{
    pool_hits(k);
    memcpy(hits, k->hits.at, k->hits.count * sizeof(u64));
    memset(k->hits.at, 0, k->hits.count * sizeof(u64));
}

API void kernel_counts(const Kernel *k, u64 *counts)
{
    counts[0] = k->states.count;
    counts[1] = k->distinct;
    counts[2] = k->generated + pool_generated(k);
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
    u64 hash = mix(state);
    if (!k->fingerprints || !seen_get(k, state, hash))
        seen_enter(k->seen, k->limit, seen_place(k, hash), seen_entry(k, hash, number), &k->furthest);
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
    k->furthest = 0;
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
