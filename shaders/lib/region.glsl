// A region. Its numbers are those of a point (2 or 3), the sides of a box (4), a center, a size and an angle (5), or a
// matrix (6). `rest` has the angle's cosine and sine, or the last numbers of the matrix.
struct Region { vec2 head, tail, rest; };
Region region_of(int item) {
    int first = item * numbers;
    Region region = Region(vec2(R(first), R(first + 1)), vec2(0.0), vec2(0.0));
    if (numbers >= 4) region.tail = vec2(R(first + 2), R(first + 3));
    if (numbers == 5) region.rest = vec2(cos(float(R(first + 4))), sin(float(R(first + 4))));
    if (numbers == 6) region.rest = vec2(R(first + 4), R(first + 5));
    return region;
}
// A place in a region, by a place in the unit square.
vec2 within(Region region, vec2 unit) {
    if (numbers < 4) return region.head;
    if (numbers == 4) return mix(region.head, region.tail, unit);
    if (numbers == 6) {
        vec3 given = vec3(unit, 1.0);
        return vec2(dot(vec3(region.head, region.tail.x), given), dot(vec3(region.tail.y, region.rest), given));
    }
    vec2 side = region.tail * (unit - 0.5), turn = region.rest;
    return region.head + vec2(turn.x * side.x - turn.y * side.y, turn.y * side.x + turn.x * side.y);
}
