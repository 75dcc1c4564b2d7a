#version 330
#extension GL_ARB_shader_viewport_layer_array : enable
#extension GL_AMD_vertex_shader_layer : enable
// Draws each instance of the triangle on a sheet of its own. Such kernels have one render target.
flat out int sheet;
void main() {
    gl_Layer = sheet = gl_InstanceID;
    gl_Position = vec4(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0, 0.0, 1.0);
}
