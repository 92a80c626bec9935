"""Runs a skein application until standard input ends.

skein_tasks.py TASKS MB SCRIPT runs the bash script in so many containers, and
again in a new one whenever a container ends.
"""
import sys

import skein

tasks, mb, script = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
worker = skein.Service(instances=tasks, max_restarts=-1, script="exec bash " + script,
                       resources=skein.Resources(memory="%d MiB" % mb, vcores=1))
with skein.Client(log_level="WARN") as client:
    application = client.submit(skein.ApplicationSpec(name="bench", services={"worker": worker}))
    sys.stdin.read()
    client.kill_application(application)
