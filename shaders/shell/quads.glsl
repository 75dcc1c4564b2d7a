#version $version
// One instance is a quad around a mark. The body defines vec2 quad(int mark, vec2 corner): where a corner of the unit
// square goes, in pixels from the target's top left. A quad without an area draws nothing.
$declarations
$math
$functions
$body
void main() {
    place = quad(gl_InstanceID, vec2(gl_VertexID & 1, gl_VertexID >> 1));
    vec2 at = place / vec2(target) * 2.0 - 1.0;
    gl_Position = vec4(at.x, flipped == 1 ? at.y : -at.y, 0.0, 1.0);
}
