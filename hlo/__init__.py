"""HLO: opset, shapes, literals, parse, print, verify, evaluate, passes, buffers, plan. Depends on no other room."""
