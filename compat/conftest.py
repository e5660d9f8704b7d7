# The makers in golden/ import the real tensor2tensor, which is elsewhere.
collect_ignore = ["golden"]
