//@ param int begin
//@ param int step
// O[o] = begin + o * step
O_TYPE element(int o) { return O_TYPE(begin + o * step); }
