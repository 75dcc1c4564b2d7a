#version 330
// A triangle that covers the viewport. It needs no vertex data.
flat out int instance;
void main() {
    instance = gl_InstanceID;
    gl_Position = vec4(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0, 0.0, 1.0);
}
