//@ input X
//@ input L
//@ param int times
//@ param int time_step
//@ param int batches
//@ param int batch_step
// The first L[batch] elements along the time axis are reversed, or all if there are fewer. The others stay as they are.
O_TYPE element(int o) {
    int time = o / time_step % times, length_ = min(max(int(L(o / batch_step % batches)), 0), times);
    return X(time < length_ ? o + (length_ - 1 - 2 * time) * time_step : o);
}
