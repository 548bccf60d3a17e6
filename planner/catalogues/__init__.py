"""What the bundled data files hold, as checked records: models, devices, formats, tariffs, prices."""
