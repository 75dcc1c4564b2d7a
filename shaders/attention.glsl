//@ input Q
//@ input K
//@ input V
//@ input G
//@ input B
//@ input S
//@ input C
//@ param int token
//@ param int tokens
//@ param int query_heads
//@ param int heads
//@ param int keys
//@ param int values
//@ param int delta
//@ param int decays
//@ param int betas
//@ param float scale
//@ long
// One token of linear attention, in three parts. The state S is (batch, head, key, value). Q, K, V, the decay G and the
// rate B are (batch, token, head and element).
int packed_at(int b, int count) { return (b * tokens + token) * count; }
#if PART != READ
float decay(int b, int h, int i) {
    if (decays == 0) return 1.0;
    return exp(G(packed_at(b, decays) + (decays == heads ? h : h * keys + i)));
}
#endif
#if PART == CHANGE
// The change C that the token makes at its key, (batch, head, value): its value, or (delta) the value's difference to
// the state's.
float element(int o) {
    int j = o % values, h = o / values % heads, b = o / (values * heads);
    float value = V(packed_at(b, heads * values) + h * values + j);
    if (delta == 0) return value;
    int at = (b * heads + h) * keys * values + j, key = packed_at(b, heads * keys) + h * keys;
    float known = 0.0;
    for (int i = 0; i < keys; ++i) known += K(key + i) * decay(b, h, i) * S(at + i * values);
    return B(packed_at(b, betas) + (betas == 1 ? 0 : h)) * (value - known);
}
#elif PART == STATE
float element(int o) {
    int j = o % values, row = o / values, i = row % keys, head = row / keys, h = head % heads, b = head / heads;
    return decay(b, h, i) * S(o) + K(packed_at(b, heads * keys) + h * keys + i) * C(head * values + j);
}
#else
float element(int o) {
    int j = o % values, q = o / values % query_heads, b = o / (values * query_heads);
    int at = (b * heads + q / (query_heads / heads)) * keys * values + j;
    int query = packed_at(b, query_heads * keys) + q * keys;
    float total = 0.0;
    for (int i = 0; i < keys; ++i) total += Q(query + i) * S(at + i * values);
    return scale * total;
}
#endif
