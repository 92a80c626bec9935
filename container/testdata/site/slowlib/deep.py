value = 41
