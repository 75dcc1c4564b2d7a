#version 330
uniform mat4 view;
uniform mat4 model;
in vec3 position;
in vec3 normal;
in vec2 place;
out vec3 world;
out vec3 facing;
out vec2 at;

void main() {
    vec4 moved = model * vec4(position, 1.0);
    world = moved.xyz;
    facing = mat3(model) * normal;
    at = place;
    gl_Position = view * moved;
}
