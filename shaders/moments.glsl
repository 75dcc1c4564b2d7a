//@ input X elements texels
//@ param int size
//@ param int inner
//@ param int results
//@ param int stride
//@ param int run
//@ param int paired
//@ param int by_rows
//@ param int whole
//@ param int lanes
//@ param int across
//@ param int weight
//@ param int total
//@ param int centered
//@ unit texel, grid if SCATTERED
//@ long
//@ include together
//@ include walk
//@ include pairs
// The pair of a row: its mean (0 unless centered), and the sum of squared distances from it. In later passes each pair
// stands for `weight` of the row's `total` elements, the last one for the rest.
float nothing;
#define NOTHING nothing
vec4 sum(vec4 a, vec4 b) { return a + b; }
TOGETHER_BY(sum_of, sum)
vec4 sum_of_all(vec4 x) {
    x = sum_of(x);
    return by_rows == 1 ? vec4(sum_of_four(x)) : x;
}
void pairs(out vec4 mean, out vec4 square) {
    int stop = end, none = paired == 1 ? begin : end; // the ends of walks over pairs and over elements
    mean = square = vec4(0.0);
    float count = paired == 1 ? float(min(stop * weight, total) - begin * weight) : float(stop - begin);
    nothing = 0.0;
    end = centered == 1 ? none : begin;
#define ADD(x, at) mean += x;
    WALK(ADD)
    for (int i = begin + lane(); i < (paired == 1 && centered == 1 ? stop : 0); i += LANES) {
        ivec4 at = first + i * step_;
        mean += float(min(weight, total - i * weight)) * vec4(X(at.x), X(at.y), X(at.z), X(at.w));
    }
    mean = sum_of_all(mean) / count;
    nothing = mean.x;
    end = none;
#define ADD_SQUARE(x, at) { vec4 distance = x - mean; square += distance * distance; }
    WALK(ADD_SQUARE)
    for (int i = begin + lane(); i < (paired == 1 ? stop : 0); i += LANES) {
        ivec4 at = first + i * step_;
        vec4 distance = vec4(X(at.x), X(at.y), X(at.z), X(at.w)) - mean;
        square += float(min(weight, total - i * weight)) * distance * distance;
        square += vec4(X(at.x + 1), X(at.y + 1), X(at.z + 1), X(at.w + 1));
    }
    square = sum_of_all(square);
}
