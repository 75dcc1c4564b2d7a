//@ input X
//@ input U
//@ input R
//@ input T
// An element, scaled so that the mean stays, or 0 where what is drawn for it lies below the ratio; or (MASK) whether it is kept.
// Who does not train keeps all as it is.
O_TYPE element(int o) {
    float ratio = R(0);
    bool trains = int(T(0)) != 0, kept = !trains || U(o) >= ratio;
#if MASK
    return O_TYPE(kept);
#else
    return kept ? (trains && ratio != 0.0 ? X(o) * (1.0 / (1.0 - ratio)) : X(o)) : 0.0;
#endif
}
