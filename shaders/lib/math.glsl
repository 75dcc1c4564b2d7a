// The functions of formulas that GLSL lacks, defines otherwise, or defines without a promise about NaN.
// x, but no compiler knows it: O_size is never negative.
#define APART(x) uintBitsToFloat(floatBitsToUint(x) ^ (uint(O_size) >> 31u))
bool is_nan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }
bool is_inf(float x) { return (floatBitsToUint(x) & 0x7fffffffu) == 0x7f800000u; }
float minimum(float a, float b) { return is_nan(a) || a < b ? a : b; }
float maximum(float a, float b) { return is_nan(a) || a > b ? a : b; }
int minimum(int a, int b) { return min(a, b); }
int maximum(int a, int b) { return max(a, b); }
float limit(float x, float low, float high) { return minimum(maximum(x, low), high); }
int limit(int x, int low, int high) { return min(max(x, low), high); }
#define clamp limit
ivec2 clamp_to_edge(ivec2 at, ivec2 size) { return min(max(at, ivec2(0)), size - 1); }
float round_even(float x) { return is_inf(x) || abs(x) >= 8388608.0 ? x : roundEven(x); }
float sign_(float x) { return is_nan(x) ? x : sign(x); }
int sign_(int x) { return sign(x); }
#define sign sign_
// Near 0 it is 2 atanh(x / (2 + x)). Tricks with 1 + x - 1 fail, because compilers may replace it by x.
float log1p(float x) {
    float s = x / (2.0 + x), z = s * s;
    float near = 2.0 * s * (1.0 + z * (1.0 / 3.0 + z * (1.0 / 5.0 + z * (1.0 / 7.0 + z / 9.0))));
    return abs(x) < 0.3 ? near : log(1.0 + x);
}
float sinh_(float x) {
    float s = x * x;
    return abs(x) < 0.5 ? x * (1.0 + s * (1.0 / 6.0 + s * (1.0 / 120.0 + s / 5040.0))) : 0.5 * (exp(x) - exp(-x));
}
#define sinh sinh_
float cosh_(float x) { return 0.5 * (exp(x) + exp(-x)); }
#define cosh cosh_
float tanh_(float x) {
    float s = x * x;
    if (s < 0.0225) return x * (1.0 + s * (-0.333333333 + s * (0.133333333 + s * -0.053968254)));
    float e = exp(-2.0 * abs(x));
    float q = (1.0 - e) / (1.0 + e);
    return is_nan(x) ? x : (x < 0.0 ? -q : q);
}
#define tanh tanh_
const float FAR = 1e9; // beyond it, adding 1 to the squares below changes nothing, and finally they overflow
float asinh_(float x) {
    float a = abs(x), s = x * x;
    if (a > FAR) return sign(x) * (log(a) + 0.6931471805599453);
    float r = a < 0.2 ? a * (1.0 + s * (-1.0 / 6.0 + s * (3.0 / 40.0 + s * (-15.0 / 336.0)))) : log(a + sqrt(s + 1.0));
    return x < 0.0 ? -r : r;
}
#define asinh asinh_
float acosh_(float x) {
    if (x < 1.0) return 0.0 / 0.0;
    return x > FAR ? log(x) + 0.6931471805599453 : log(x + sqrt((x - 1.0) * (x + 1.0)));
}
#define acosh acosh_
float atanh_(float x) { return 0.5 * (log1p(x) - log1p(-x)); }
#define atanh atanh_
// fdlibm's rational approximation for asinf, because GLSL promises only three digits.
float asin_(float x) {
    float a = abs(x), z = a < 0.5 ? a * a : 0.5 * (1.0 - a), s = a < 0.5 ? a : sqrt(z);
    float r = z * (1.6666586697e-01 + z * (-4.2743422091e-02 + z * -8.6563630030e-03)) / (1.0 - 7.0662963390e-01 * z);
    float y = a < 0.5 ? a + a * r : 1.5707963267948966 - 2.0 * (s + s * r);
    return x < 0.0 ? -y : y;
}
#define asin asin_
float acos_(float x) { return x > 0.5 ? 2.0 * asin(sqrt(0.5 * (1.0 - x))) : 1.5707963267948966 - asin(x); }
#define acos acos_
const float NEARBY = 16.0; // the sine and the cosine that drivers have are exact enough up to here
// The bits of 2 / pi behind the binary point.
const uint TWO_BY_PI[7] = uint[](0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu);
uvec2 product(uint a, uint b) { // its upper and its lower word
    uint a0 = a & 0xffffu, a1 = a >> 16, b0 = b & 0xffffu, b1 = b >> 16;
    uint low = a0 * b0, one = a1 * b0 + (low >> 16), other = a0 * b1 + (one & 0xffffu);
    return uvec2(a1 * b1 + (one >> 16) + (other >> 16), (other << 16) | (low & 0xffffu));
}
// The rest of an angle from the nearest quarter of a turn, and the number of that quarter. Payne and Hanek, Radian
// reduction for trigonometric functions, 1983: only those bits of 2 / pi count that make no whole turns of x.
float in_quarter(float x, out int quarter) {
    uint bits = floatBitsToUint(x), mantissa = (bits & 0x7fffffu) | 0x800000u;
    int skipped = int((bits >> 23) & 0xffu) - 152, word = max(skipped, 0) >> 5, bit = max(skipped, 0) & 31;
    uint w[3];
    for (int k = 0; k < 3; ++k)
        w[k] = bit == 0 ? TWO_BY_PI[word + k] : (TWO_BY_PI[word + k] << bit) | (TWO_BY_PI[word + k + 1] >> (32 - bit));
    if (skipped < 0) { // a small angle takes zeros from before the binary point
        for (int k = 2; k > 0; --k) w[k] = (w[k] >> -skipped) | (w[k - 1] << (32 + skipped));
        w[0] >>= -skipped;
    }
    uvec2 low = product(mantissa, w[2]), middle = product(mantissa, w[1]), high = product(mantissa, w[0]);
    uint p1 = middle.y + low.x, p0 = high.y + middle.x + (p1 < low.x ? 1u : 0u);
    uint rest = (p0 << 2) | (p1 >> 30), more = (p1 << 2) | (low.y >> 30);
    bool before = (rest >> 31) == 1u; // the next quarter is nearer
    quarter = int(p0 >> 30) + (before ? 1 : 0);
    if (before) { rest = ~rest; more = ~more; }
    float angle = (float(rest) + float(more) * 2.3283064365386963e-10) * 3.6572951981117443e-10; // pi / 2 is 2^32
    if (x < 0.0) quarter = -quarter;
    return before != (x < 0.0) ? -angle : angle;
}
float sine(float x, int more) { // of x and so many quarters of a turn
    int quarter;
    float rest = in_quarter(x, quarter);
    float value = ((quarter + more) & 1) == 0 ? sin(rest) : cos(rest);
    return is_inf(x) ? 0.0 / 0.0 : ((quarter + more) & 2) == 0 ? value : -value;
}
float sin_(float x) { return abs(x) > NEARBY ? sine(x, 0) : sin(x); }
float cos_(float x) { return abs(x) > NEARBY ? sine(x, 1) : cos(x); }
float tan_(float x) { return abs(x) > NEARBY ? sine(x, 0) / sine(x, 1) : tan(x); }
#define sin sin_
#define cos cos_
#define tan tan_
float atan_(float x) { return is_nan(x) ? x : atan(x); }
#define atan atan_
// For |x| < 0.84 fdlibm's rational approximation. Beyond, Abramowitz and Stegun 7.1.26, with an error of 1.5e-7 of a
// value near 1.
float erf(float x) {
    float a = abs(x), z = x * x;
    if (a < 0.84375) {
        float p = 1.28379167095512558561e-01 + z * (-3.25042107247001499370e-01 + z * (-2.84817495755985104766e-02 + z * (-5.77027029648944159157e-03 + z * -2.37630166566501626084e-05)));
        float q = 1.0 + z * (3.97917223959155352819e-01 + z * (6.50222499887672944485e-02 + z * (5.08130628187576562776e-03 + z * (1.32494738004321644526e-04 + z * -3.96022827877536812320e-06))));
        return x + x * (p / q);
    }
    float t = 1.0 / (1.0 + 0.3275911 * a);
    float y = 1.0 - ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t * exp(-z);
    return is_nan(x) ? x : (x < 0.0 ? -y : y);
}
// C's pow. GLSL's pow handles neither NaN nor negative numbers.
float power(float a, float b) {
    if (b == 0.0 || a == 1.0) return 1.0;
    if (is_nan(a) || is_nan(b)) return a + b;
    float magnitude = a == 0.0 ? (b > 0.0 ? 0.0 : 1.0 / 0.0) : a == -1.0 ? 1.0 : pow(abs(a), b);
    if (a > 0.0 || (a == 0.0 && 1.0 / a > 0.0)) return magnitude;
    if (floor(b) != b) return a == 0.0 || a < -3.4028235e38 ? magnitude : 0.0 / 0.0;
    return mod(b, 2.0) == 1.0 ? -magnitude : magnitude;
}
int power(int a, int b) {
    int result = 1;
    for (int n = b; n > 0; n >>= 1, a *= a) if ((n & 1) == 1) result *= a;
    return b < 0 ? (a == 1 ? 1 : (a == -1 ? ((b & 1) == 1 ? -1 : 1) : 0)) : result;
}
int trunc_div(int a, int b) { return b == 0 ? 0 : a / b; }
float trunc_div(float a, float b) { return trunc(a / b); }
int trunc_mod(int a, int b) { return b == 0 ? 0 : a - b * (a / b); }
// Exact: subtracts b times powers of two, from the largest on. The error of a - b * trunc(a / b) is as large as the
// rounding error of a.
float trunc_mod(float a, float b) {
    float rest = abs(a), least = abs(b);
    if (is_nan(a) || is_nan(b) || is_inf(a) || b == 0.0) return 0.0 / 0.0;
    float step = max(least, 1.1754944e-38);
    while (step <= 0.5 * rest) step *= 2.0;
    for (; step >= least && rest >= least; step *= 0.5) if (rest >= step) rest -= step;
    return a < 0.0 ? -rest : rest;
}
int floor_mod(int a, int b) { int r = trunc_mod(a, b); return r != 0 && (r < 0) != (b < 0) ? r + b : r; }
float floor_mod(float a, float b) { float r = trunc_mod(a, b); return r != 0.0 && (r < 0.0) != (b < 0.0) ? r + b : r; }
float log_sum_exp(float a, float b) {
    float largest = maximum(a, b);
    return is_inf(largest) || is_nan(largest) ? largest : largest + log1p(exp(-abs(a - b)));
}
int shift_left(int a, int b) { return b < 0 || b > 31 ? 0 : a << b; }
int shift_right(int a, int b) { return b < 0 || b > 31 ? (a < 0 ? -1 : 0) : a >> b; }
