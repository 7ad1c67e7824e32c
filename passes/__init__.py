"""HLO passes: functions from module to module, and the pipeline that runs them."""
