vec4 epilogue_of_four(vec4 x) { return vec4(epilogue(x.x), epilogue(x.y), epilogue(x.z), epilogue(x.w)); }
