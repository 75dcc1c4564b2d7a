// A place in a region, by a place in the unit square. The numbers of a region are those of a point (2 or 3), the sides of
// a box (4), a center, a size and an angle (5), or a matrix (6).
vec2 within(int item, vec2 unit) {
    int first = item * numbers;
    vec2 head = vec2(R(first), R(first + 1));
    if (numbers < 4) return head;
    vec2 tail = vec2(R(first + 2), R(first + 3));
    if (numbers == 4) return mix(head, tail, unit);
    if (numbers == 6) {
        vec3 given = vec3(unit, 1.0);
        return vec2(dot(vec3(head, tail.x), given), dot(vec3(tail.y, R(first + 4), R(first + 5)), given));
    }
    vec2 side = tail * (unit - 0.5);
    float c = cos(float(R(first + 4))), s = sin(float(R(first + 4)));
    return head + vec2(c * side.x - s * side.y, s * side.x + c * side.y);
}
