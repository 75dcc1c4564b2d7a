//@ input X
//@ param int size
//@ param int run
//@ param int parts
//@ param int paired
//@ param int weight
//@ param int total
//@ param int centered
// A pair of numbers for each part of each row: the mean (0 unless centered), and the sum of squared distances from it.
// Long rows are done in parts. Later passes (paired) join the pairs of parts, each of which stands for `weight` of the
// row's `total` elements.
#define LONG
float element(int o) {
    int pair = o >> 1, row = pair / parts, begin = (pair - row * parts) * run;
    int first = row * size, end = min(begin + run, size), stride = paired == 1 ? 2 : 1;
    int fours = paired == 0 ? begin + (end - begin) / 4 * 4 : begin; // up to here four are read at once
    float mean = 0.0, count = 0.0, square = 0.0;
    if (centered == 1) {
        for (int i = begin; i < fours; i += 4) {
            vec4 four = X_four(first + i);
            mean += four.x + four.y + four.z + four.w;
            count += 4.0;
        }
        for (int i = fours; i < end; ++i) {
            float elements = float(min(weight, total - i * weight));
            mean += elements * X((first + i) * stride);
            count += elements;
        }
        mean /= count;
    }
    if ((o & 1) == 0) return mean;
    for (int i = begin; i < fours; i += 4) {
        vec4 distance = X_four(first + i) - mean;
        square += dot(distance, distance);
    }
    for (int i = fours; i < end; ++i) {
        float distance = X((first + i) * stride) - mean;
        square += float(min(weight, total - i * weight)) * distance * distance;
        if (paired == 1) square += X((first + i) * 2 + 1);
    }
    return square;
}
