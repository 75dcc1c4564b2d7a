#version 330
// Coloured by the direction in which the creature goes, so that flocks are of one colour; notched at the tail.
in vec2 within;
in float heading;
in float speed;
out vec4 color;

void main() {
    if (within.x < -0.7 + 0.4 * (1.0 - abs(within.y) / 0.55)) discard;
    vec3 hue = 0.5 + 0.5 * cos(heading + vec3(0.0, -2.0, 2.2));
    vec3 shade = mix(vec3(1.0, 0.72, 0.28), vec3(0.30, 0.80, 1.0), hue.z);
    shade = mix(shade, vec3(1.0, 0.36, 0.55), 0.8 * hue.y);
    color = vec4(shade * (0.85 + 0.4 * speed), 1.0);
}
