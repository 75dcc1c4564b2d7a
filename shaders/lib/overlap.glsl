// Whether two boxes (low corner, high corner) overlap by more than a limit: common area / area of both.
float area(vec2 size) { return size.x * size.y; }
bool overlap(vec4 a, vec4 b, float limit) {
    float shared_ = area(max(min(a.zw, b.zw) - max(a.xy, b.xy), vec2(0.0)));
    float one = area(a.zw - a.xy), other = area(b.zw - b.xy), both = one + other - shared_;
    return shared_ > 0.0 && both > 0.0 && one > 0.0 && other > 0.0 && shared_ / both > limit;
}
