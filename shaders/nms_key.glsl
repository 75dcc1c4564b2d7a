//@ input X
//@ input L
//@ param int bounded
// The key of each box for a sort in ascending order: the best candidate comes first. A box that is no candidate has
// NaN, which comes last.
float element(int o) {
    float score = X(o);
    return bounded == 0 || score > L(0) ? -score : uintBitsToFloat(0x7fc00000u);
}
