//@ input X
//@ input R
//@ input F
//@ param ivec2 size
//@ param ivec2 output_
//@ param int channels
//@ param int pictures
//@ param int first
//@ param int last
//@ param float scale
//@ long
// The largest element of each cell of a region. A pass reads some rows of the picture; F is the result of the pass
// before. Regions are rows of (picture, x1, y1, x2, y2). Both ends belong to the region, and are rounded with halves
// away from zero. A cell without elements is 0, and so are all cells of a missing picture.
ivec2 nearest(float a, float b) {
    vec2 v = vec2(a, b) * scale;
    return ivec2(sign(v.x), sign(v.y)) * ivec2(min(floor(abs(v) + 0.5), 1048576.0)); // far beyond any picture
}
float element(int o) {
    ivec2 cell = ivec2(o / output_.y % output_.x, o % output_.y);
    int rest = o / (output_.x * output_.y), roi = rest / channels * 5;
    int picture = int(R(roi));
    if (picture < 0 || picture >= pictures) return 0.0;
    int plane = (picture * channels + rest % channels) * size.x * size.y;
    ivec2 low = nearest(R(roi + 2), R(roi + 1)), high = nearest(R(roi + 4), R(roi + 3));
    ivec2 extent = max(high - low + 1, ivec2(1));
    ivec2 begin = min(max(low + cell * extent / output_, ivec2(0)), size);
    ivec2 end = min(max(low + ((cell + 1) * extent + output_ - 1) / output_, ivec2(0)), size);
    if (any(lessThanEqual(end, begin))) return 0.0;
    float largest = first > 0 ? F(o) : -1.0 / 0.0;
    for (int y = max(begin.x, first); y < min(end.x, last); ++y)
        for (int x = begin.y; x < end.y; ++x) largest = maximum(largest, X(plane + y * size.y + x));
    return largest;
}
