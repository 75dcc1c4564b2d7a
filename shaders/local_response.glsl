//@ input X
//@ param int channels
//@ param int inner
//@ param int before
//@ param int after
//@ param float alpha
//@ param float beta
//@ param float bias
//@ long
// Each element, divided by a power of the squares of its neighbouring channels.
float element(int o) {
    int c = o / inner % channels;
    float total = 0.0;
    for (int k = max(-before, -c); k <= min(after, channels - 1 - c); ++k) {
        float x = X(o + k * inner);
        total += x * x;
    }
    return X(o) / power(bias + alpha * total, beta);
}
