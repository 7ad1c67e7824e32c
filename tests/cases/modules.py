"""HLO that several tests use."""

ADD = "HloModule m\n\nENTRY e {\n  p = f32[2]{0} parameter(0)\n  ROOT r = f32[2]{0} add(p, p)\n}\n"
