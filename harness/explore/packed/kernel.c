/* The inner loop of the exhaustive search: states of some 64-bit words, looked up in tables that Python fills on demand.

   A state is one integer. A look-up maps `state & mask` to an entry: edges (a difference to add, and channels whose
   difference depends on their own bits), answers of checks, and look-ups in which to look further. What is missing is
   asked for by a callback, before anything of that state counts, so that an error leaves no state half expanded.
   States are kept in the order of their discovery; the table of seen states holds their numbers and some bits of
   their hash. Compiled without Python's headers, used through ctypes. */

#include "kernel_tables.h"

/* ---- the states seen ---- */

static u64 bytes_used(const Kernel *k)
{
    return k->states.room * sizeof(Bits) + (k->limit + 1) * sizeof(u64);
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

/* ---- looking up ---- */

static inline u32 look_up_get(Kernel *k, u32 number, Bits state)
{
    Table *table = &k->look_ups.at[number];
    u32 found = table_get(table, state);
    if (LIKELY(found != NONE)) return found;
    words_of(state, k->missed);
    int64_t answer = k->miss(LOOK_UP, number);
    if (answer < 0) return NONE;
    table = &k->look_ups.at[number];
    if (table_put(table, state, (u32)answer)) return NONE;
    return (u32)answer;
}

static inline int least(Kernel *k, Bits *state)
{
    Bits from = *state, image = bits_none();
    u32 at = 0;
    do {
        Table *orbit = &k->orbits.at[at];
        u32 found = table_get(orbit, from);
        if (found == NONE) {
            words_of(from, k->missed);
            int64_t answer = k->miss(IMAGE, at);
            if (answer < 0) return FAILED;
            orbit = &k->orbits.at[at];
            found = (u32)answer;
            if (table_put(orbit, from, found)) return NO_MEMORY;
        }
        image = sum(image, sum(k->images.at[found].part, both(from, k->images.at[found].rest)));
        at = k->images.at[found].next;
    } while (at != NONE);
    *state = image;
    return OK;
}

/* Find all that is known of a state: entries into `met`, successors (canonical where asked) into `after`. */
static int look(Kernel *k, Bits state)
{
    k->met.count = k->after.count = k->ahead.count = 0;
    if (ROOM(k->ahead, k->roots.count)) return NO_MEMORY;
    for (u64 i = k->roots.count; i-- > 0;) k->ahead.at[k->ahead.count++] = k->roots.at[i];
    while (k->ahead.count) {
        u32 number = look_up_get(k, k->ahead.at[--k->ahead.count], state);
        if (number == NOTHING) continue;
        if (number == NONE) return FAILED;
        Entry *found = &k->entries.at[number];
        if (found->edges != found->edges_end || found->answers) {
            if (ROOM(k->met, 1)) return NO_MEMORY;
            k->met.at[k->met.count++] = number;
        }
        u64 children = found->children_end - found->children;
        if (ROOM(k->ahead, children)) return NO_MEMORY;
        for (u64 i = children; i-- > 0;) k->ahead.at[k->ahead.count++] = k->links.at[found->children + i];
    }
    for (u64 m = 0; m < k->met.count; m++) {
        u32 first = k->entries.at[k->met.at[m]].edges, end = k->entries.at[k->met.at[m]].edges_end;
        if (ROOM(k->after, end - first)) return NO_MEMORY;
        for (u32 e = first; e < end; e++) {
            Bits after = sum(state, k->edges.at[e].delta);
            for (u32 c = k->edges.at[e].channels; c < k->edges.at[e].channels_end; c++) {
                u32 number = k->links.at[c];
                Channel *channel = &k->channels.at[number];
                u64 at = bits_at(state, channel->shift) & channel->low;
                if (at >= channel->room || !channel->known[at]) {
                    words_of(state, k->missed);
                    if (k->miss(CHANNEL, number) < 0) return FAILED;
                    channel = &k->channels.at[number];
                }
                after = sum(after, channel->difference[at]);
            }
            if (k->symmetric && least(k, &after)) return FAILED;
            k->after.at[k->after.count++] = after;
        }
    }
    return OK;
}

static int is_outside(Kernel *k, Bits state)
{
    u32 table = k->bounds;
    while (table != NONE) {
        u32 number = look_up_get(k, table, state);
        if (number == NONE) return FAILED;
        Entry *found = &k->entries.at[number];
        if (found->answers) return 1;
        table = found->children == found->children_end ? NONE : k->links.at[found->children];
    }
    return 0;
}

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

/* Expand the states from *begin up to end (numbers among those kept); *begin is where it stopped. */
API int kernel_expand(Kernel *k, u64 *begin, u64 end)
{
    int failed;
    for (; *begin < end; ++*begin) {
        Bits state = k->states.at[*begin];
        if ((failed = look(k, state))) { int also = commit(k); return also ? also : failed; }
        if (k->bounds != NONE) {
            u64 kept = 0;
            for (u64 i = 0; i < k->after.count; i++) {
                Bits after = k->after.at[i];
                int outside = is_outside(k, after);
                if (outside < 0) { int also = commit(k); return also ? also : FAILED; }
                if (!outside) k->after.at[kept++] = after;
                else if (map_get(&k->outside_map, after) == NONE) {
                    if (map_put(&k->outside_map, after, 0) || ROOM(k->outside, 1)) return NO_MEMORY;
                    k->outside.at[k->outside.count++] = after;
                }
            }
            k->after.count = kept;
        }
        int any = 0;
        for (u64 m = 0; m < k->met.count; m++) {
            Entry *found = &k->entries.at[k->met.at[m]];
            found->hits++;
            k->generated += found->ways;
            any |= found->edges != found->edges_end;
            if (found->answers) {
                if (ROOM(k->events, 1)) return NO_MEMORY;
                k->events.at[k->events.count++] = (Event){ *begin, k->met.at[m], 0 };
            }
        }
        if (!any && k->deadlocks) {
            if (ROOM(k->events, 1)) return NO_MEMORY;
            k->events.at[k->events.count++] = (Event){ *begin, NONE, 0 };
        }
        if (ROOM(k->pending, k->after.count)) return NO_MEMORY;
        for (u64 i = 0; i < k->after.count; i++) {
            Bits after = k->after.at[i];
            if (same(after, state)) continue;
            u64 hash = mix(after);
            __builtin_prefetch(&k->seen[hash & k->limit]);
            k->pending.at[k->pending.count++] = (Pending){ after, hash };
        }
        if (k->pending.count >= 32 && (failed = commit(k))) { ++*begin; return failed; }
    }
    return commit(k);
}

/* Which of some states have one of the targets among their successors. */
API int64_t kernel_sources(Kernel *k, const u64 *targets, u64 count, const u64 *states, u64 number, u64 *sources)
{
    Map map = { NULL, 0, 0 };
    int64_t found = 0;
    for (u64 i = 0; i < count; i++)
        if (map_put(&map, bits_of(targets + WORDS * i), 0)) { map_clear(&map); return NO_MEMORY; }
    for (u64 n = 0; n < number; n++) {
        if (look(k, bits_of(states + WORDS * n))) { map_clear(&map); return FAILED; }
        for (u64 i = 0; i < k->after.count; i++)
            if (map_get(&map, k->after.at[i]) != NONE) { sources[found++] = n; break; }
    }
    map_clear(&map);
    return found;
}

/* The edges of the states from begin to end as three lists: from, to, and the number of the edge. */
API int64_t kernel_graph(Kernel *k, u64 begin, u64 end, int32_t *from, int32_t *to, int32_t *label, u64 room)
{
    u64 count = 0;
    for (u64 n = begin; n < end; n++) {
        if (look(k, k->states.at[n])) return FAILED;
        u64 i = 0;
        for (u64 m = 0; m < k->met.count; m++)
            for (u32 e = k->entries.at[k->met.at[m]].edges; e < k->entries.at[k->met.at[m]].edges_end; e++, i++) {
                u64 number = seen_get(k, k->after.at[i], mix(k->after.at[i]));
                if (number == NUMBER) continue;
                if (count == room) return LIMIT;
                from[count] = (int32_t)n;
                to[count] = (int32_t)number;
                label[count++] = (int32_t)e;
            }
    }
    return (int64_t)count;
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
    counts[6] = bytes_used(k);
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
