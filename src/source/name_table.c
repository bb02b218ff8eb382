/*
 * Open addressing, linear probes, at most half full. The hash is SipHash-1-3, the key comes from where the
 * table happens to lie in memory: address randomisation is what a hostile file cannot foresee, and it costs
 * no system call.
 */
#include "source/name_table.h"

#include <string.h>

#include "base/le_bytes.h"
#include "base/mem.h"

typedef struct sip_state {
    uint64_t a, b, c, d;
} sip_state;

static uint64_t rotl(uint64_t x, unsigned n_bits)
{
    return x << n_bits | x >> (64 - n_bits);
}

static void sip_round(sip_state *s)
{
    s->a += s->b;
    s->c += s->d;
    s->b = rotl(s->b, 13) ^ s->a;
    s->d = rotl(s->d, 16) ^ s->c;
    s->a = rotl(s->a, 32);
    s->c += s->b;
    s->a += s->d;
    s->b = rotl(s->b, 17) ^ s->c;
    s->d = rotl(s->d, 21) ^ s->a;
    s->c = rotl(s->c, 32);
}

static void sip_word(sip_state *s, uint64_t word)
{
    s->d ^= word;
    sip_round(s);
    s->a ^= word;
}

static uint64_t hash_name(const uint64_t key[2], sl_span name)
{
    sip_state s = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
            key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u};
    size_t i = 0;
    for (; i + 8 <= name.n; i += 8) {
        sip_word(&s, sl__load_u64(name.p + i));
    }
    unsigned char tail[8] = {0};
    if (name.n > i) {
        memcpy(tail, name.p + i, name.n - i);
    }
    tail[7] = (unsigned char)name.n;
    sip_word(&s, sl__load_u64(tail));
    s.c ^= 0xff;
    sip_round(&s);
    sip_round(&s);
    sip_round(&s);
    return s.a ^ s.b ^ s.c ^ s.d;
}

void sl__name_table_done(sl__name_table *table)
{
    sl__free(table->slots);
    memset(table, 0, sizeof *table);
}

/* The slot that holds the name, or the free one where it belongs. */
static sl__name_slot *probe(const sl__name_table *table, sl_span name, uint64_t hash)
{
    size_t mask = table->n_slots - 1;
    size_t i = (size_t)hash & mask;
    for (;;) {
        sl__name_slot *slot = &table->slots[i];
        if (slot->index == SL_NAME_NONE) {
            return slot;
        }
        if (slot->tag == (uint32_t)(hash >> 32) && slot->name.n == name.n &&
                (name.n == 0 || memcmp(slot->name.p, name.p, name.n) == 0)) {
            return slot;
        }
        i = (i + 1) & mask;
    }
}

/* Makes room for one name more. */
static int grow(sl__name_table *table, sl_error *reterr)
{
    sl__name_table grown = *table;
    grown.n_slots = table->n_slots ? 2 * table->n_slots : 16;
    if (table->n_names >= INT32_MAX) {
        return sl__fail(reterr, SL_ELIMIT, "more than %d names are not indexed", INT32_MAX);
    }
    grown.slots = sl__alloc(grown.n_slots, sizeof *grown.slots);
    if (!grown.slots) {
        return sl__fail_nomem(reterr, grown.n_slots * sizeof *grown.slots, "a table of names");
    }
    if (table->n_slots == 0) {
        grown.key[0] = (uint64_t)(uintptr_t)grown.slots;
        grown.key[1] = rotl((uint64_t)(uintptr_t)table, 32) ^ (uint64_t)(uintptr_t)&hash_name;
    }
    for (size_t i = 0; i < grown.n_slots; i++) {
        grown.slots[i].index = SL_NAME_NONE;
    }
    for (size_t i = 0; i < table->n_slots; i++) {
        const sl__name_slot *slot = &table->slots[i];
        if (slot->index != SL_NAME_NONE) {
            *probe(&grown, slot->name, hash_name(grown.key, slot->name)) = *slot;
        }
    }
    sl__free(table->slots);
    *table = grown;
    return 0;
}

int sl__name_table_add(
        sl__name_table *table, sl_span name, uint32_t index, uint32_t *ret_other, sl_error *reterr)
{
    if (2 * (table->n_names + 1) > table->n_slots) {
        int r = grow(table, reterr);
        if (r < 0) {
            return r;
        }
    }
    uint64_t hash = hash_name(table->key, name);
    sl__name_slot *slot = probe(table, name, hash);
    *ret_other = slot->index;
    if (slot->index == SL_NAME_NONE) {
        slot->name = name;
        slot->index = index;
        slot->tag = (uint32_t)(hash >> 32);
        table->n_names++;
    }
    return 0;
}

uint32_t sl__name_table_find(const sl__name_table *table, sl_span name)
{
    if (table->n_slots == 0) {
        return SL_NAME_NONE;
    }
    return probe(table, name, hash_name(table->key, name))->index;
}

uint64_t sl__name_table_bytes(const sl__name_table *table)
{
    return (uint64_t)table->n_slots * sizeof *table->slots;
}
