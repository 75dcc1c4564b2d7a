#version 330
// A dart for each creature: its place and its velocity are a texel.
uniform sampler2D creatures;
uniform vec2 extent;
out vec2 within;  // of the dart: ahead and to the side
out float heading;
out float speed;

void main() {
    vec4 creature = texelFetch(creatures, ivec2(gl_InstanceID, 0), 0);
    speed = length(creature.zw);
    vec2 ahead = creature.zw / max(speed, 1e-4), side = vec2(-ahead.y, ahead.x);
    vec2 corner = gl_VertexID == 0 ? vec2(1.0, 0.0) : vec2(-0.7, gl_VertexID == 1 ? 0.55 : -0.55);
    vec2 place = creature.xy + 0.036 * (ahead * corner.x + side * corner.y);
    within = corner;
    heading = atan(ahead.y, ahead.x);
    gl_Position = vec4(place / extent, 0.0, 1.0);
}
