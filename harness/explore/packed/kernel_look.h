/* Looking one state up: what is known of it, and its successors. Only `Kernel` and `Looker` are touched, and the tables
   only where the looker may ask Python for what they lack; lookers that may not can work side by side. */

#ifndef KERNEL_LOOK_H
#define KERNEL_LOOK_H

#include "kernel_tables.h"

static inline int lacking(const Looker *l) { return l->asks ? FAILED : MISSED; }

static inline u32 look_up_get(Kernel *k, const Looker *l, u32 number, Bits state)
{
    Table *table = &k->look_ups.at[number];
    u32 found = table_get(table, state);
    if (LIKELY(found != NONE) || !l->asks) return found;
    words_of(state, k->missed);
    k->misses++;
    int64_t answer = k->miss(LOOK_UP, number);
    if (answer < 0) return NONE;
    table = &k->look_ups.at[number];
    if (table_put(table, state, (u32)answer)) return NONE;
    return (u32)answer;
}

static inline int least(Kernel *k, const Looker *l, Bits *state)
{
    Bits from = *state, image = bits_none();
    u32 at = 0;
    do {
        Table *orbit = &k->orbits.at[at];
        u32 found = table_get(orbit, from);
        if (found == NONE) {
            if (!l->asks) return MISSED;
            words_of(from, k->missed);
            k->misses++;
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

static int is_outside(Kernel *k, const Looker *l, Bits state)
{
    u32 table = k->bounds;
    while (table != NONE) {
        u32 number = look_up_get(k, l, table, state);
        if (number == NONE) return lacking(l);
        Entry *found = &k->entries.at[number];
        if (found->answers) return 1;
        table = found->children == found->children_end ? NONE : k->links.at[found->children];
    }
    return 0;
}

/* Find the entries of a state that say anything. */
static inline int meet(Kernel *k, Looker *l, Bits state)
{
    l->ahead.count = 0;
    if (ROOM(l->ahead, k->roots.count)) return NO_MEMORY;
    for (u64 i = k->roots.count; i-- > 0;) l->ahead.at[l->ahead.count++] = k->roots.at[i];
    while (l->ahead.count) {
        u32 number = look_up_get(k, l, l->ahead.at[--l->ahead.count], state);
        if (number == NOTHING) continue;
        if (number == NONE) return lacking(l);
        Entry *found = &k->entries.at[number];
        if (found->edges != found->edges_end || found->answers) {
            if (ROOM(l->met, 1)) return NO_MEMORY;
            l->met.at[l->met.count++] = number;
        }
        u64 children = found->children_end - found->children;
        if (ROOM(l->ahead, children)) return NO_MEMORY;
        for (u64 i = children; i-- > 0;) l->ahead.at[l->ahead.count++] = k->links.at[found->children + i];
    }
    return OK;
}

static inline int follow(Kernel *k, const Looker *l, const Edge *edge, Bits state, Bits *result)
{
    Bits after = sum(state, edge->delta);
    u32 end = edge->channels_end;
    for (u32 c = edge->channels; c < end; c++) {
        u32 number = k->links.at[c];
        Channel *channel = &k->channels.at[number];
        u64 at = bits_at(state, channel->shift) & channel->low;
        if (at >= channel->room || !channel->known[at]) {
            if (!l->asks) return MISSED;
            words_of(state, k->missed);
            k->misses++;
            if (k->miss(CHANNEL, number) < 0) return FAILED;
            channel = &k->channels.at[number];
        }
        after = sum(after, channel->difference[at]);
    }
    *result = after;
    return k->symmetric ? least(k, l, result) : OK;
}

/* Append what is known of a state, one of some: its entries, its successors (canonical where asked) within bounds, of
   which `count` gets the number, and those out of bounds. */
static int look(Kernel *k, Looker *l, Bits state, u32 of, u32 *count)
{
    int failed;
    u64 first = l->met.count;
    u32 nth = 0;
    if ((failed = meet(k, l, state))) return failed;
    for (u64 m = first; m < l->met.count; m++) {
        Entry found = k->entries.at[l->met.at[m]];
        for (u32 e = found.edges; e < found.edges_end; e++) {
            Bits after;
            if ((failed = follow(k, l, &k->edges.at[e], state, &after))) return failed;
            int outside = k->bounds == NONE ? 0 : is_outside(k, l, after);
            if (outside < 0) return outside;
            if (outside) {
                if (ROOM(l->outside, 1)) return NO_MEMORY;
                l->outside.at[l->outside.count++] = (Outside){ after, of };
                continue;
            }
            u64 hash = mix(after);
            Successors *part = &l->after[(u128)hash * l->parts >> 64];
            if (part->count == part->room && ROOM(*part, 1)) return NO_MEMORY;
            part->at[part->count++] = (Successor){ after, hash, of, nth++, same(after, state) };
        }
    }
    *count = nth;
    return OK;
}

/* Take back what a state that failed has left. */
static void look_back(Looker *l, u64 met, u32 of)
{
    l->met.count = met;
    while (l->outside.count && l->outside.at[l->outside.count - 1].of == of) l->outside.count--;
    for (u32 s = 0; s < l->parts; s++) {
        Successors *part = &l->after[s];
        while (part->count && part->at[part->count - 1].of == of) part->count--;
    }
}

static void look_anew(Looker *l, u32 parts, int asks)
{
    l->met.count = l->outside.count = 0;
    l->parts = parts;
    l->asks = asks;
    l->says = l->lacks = 0;
    for (u32 s = 0; s < parts; s++) l->after[s].count = 0;
}

/* Count what was found of a state (or, by -1 times, take that back), and note what its entries do. */
static inline void count_found(Kernel *k, u64 *hits, u64 *generated, const Looker *l, Found *found, int64_t times)
{
    for (u32 m = found->met; m < found->met_end; m++) {
        const Entry *entry = &k->entries.at[l->met.at[m]];
        hits[l->met.at[m]] += (u64)times;
        *generated += entry->ways * (u64)times;
        found->leads |= entry->edges != entry->edges_end;
        found->answers |= entry->answers != 0;
    }
}

/* Look up one state alone, asking for what is missing: all its successors are in the first part. */
static inline Looker *look_at(Kernel *k, Bits state, int *failed)
{
    u32 count;
    look_anew(&k->looker, 1, 1);
    *failed = look(k, &k->looker, state, 0, &count);
    return &k->looker;
}

#endif
