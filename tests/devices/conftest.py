# Scripts, which `test_devices.py` runs in processes of their own.
collect_ignore_glob = ["*.py"]
