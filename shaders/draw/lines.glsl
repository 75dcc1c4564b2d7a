//@ input X elements if VERTEX
//@ input P elements if VERTEX
//@ input S elements if SCORES
//@ input C elements if COLORS
//@ param ivec2 target
//@ param int flipped
//@ param vec4 map_across
//@ param vec4 map_down
//@ param vec4 map_behind
//@ param vec4 tint
//@ param int color_numbers
//@ param int colors_each
//@ param float threshold
//@ param int scores_each
//@ param int numbers
//@ param int points
//@ param int pairs
//@ param float width
//@ include marks
// Lines between pairs of points, with round ends, in each group of points.
flat PASSED vec4 ends;
#ifdef VERTEX
vec2 point_at(int point) { return mapped(vec2(X(point * numbers), X(point * numbers + 1))); }
vec2 quad(int line, vec2 corner) {
    int first = line / pairs * points, pair = line % pairs * 2;
    int begin = first + int(P(pair)), end = first + int(P(pair + 1));
    vec2 a = point_at(begin), b = point_at(end);
    ends = vec4(a, b);
    shade = shade_of(first);
    if (!is_shown(begin) || !is_shown(end) || !is_near(a) || !is_near(b)) return NOWHERE;
    vec2 along = b - a;
    along = dot(along, along) > 0.0 ? normalize(along) : vec2(1.0, 0.0);
    float reach = width * 0.5 + 1.0;
    vec2 across = vec2(-along.y, along.x) * (corner.y * 2.0 - 1.0) * reach;
    return (corner.x < 0.5 ? a - along * reach : b + along * reach) + across;
}
#else
vec4 color(ivec2 pixel) { return ink(to_segment(place, ends.xy, ends.zw) - width * 0.5); }
#endif
