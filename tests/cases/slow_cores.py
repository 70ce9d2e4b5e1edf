"""A machine with four slow and four fast cores (RK3588). Four replicas are placed on the slow ones, because
placement does not know the kinds of cores; ditto-info only warns of them.

    slow_cores.py DITTO_INFO
"""
import os
import re
import subprocess
import sys
import tempfile

NODES = 'nodeset="0x1" complete_nodeset="0x1"'


def pus(mask):
    return f'cpuset="{mask:#x}" complete_cpuset="{mask:#x}" {NODES}'


def cores():
    return "".join(f'<object type="Core" os_index="{i}" {pus(1 << i)} gp_index="{10 + i}">'
                   f'<object type="PU" os_index="{i}" {pus(1 << i)} gp_index="{20 + i}"/></object>'
                   for i in range(8))


MACHINE = f"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
<object type="Machine" os_index="0" {pus(255)} allowed_cpuset="0xff" allowed_nodeset="0x1" gp_index="1">
<object type="NUMANode" os_index="0" {pus(255)} gp_index="2" local_memory="16777216000"/>
{cores()}</object>
<cpukind cpuset="0x0f" forced_efficiency="0"><info name="CoreType" value="A55"/></cpukind>
<cpukind cpuset="0xf0" forced_efficiency="1"><info name="CoreType" value="A76"/></cpukind>
</topology>
"""

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "machine.xml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(MACHINE)
    text = subprocess.run([sys.argv[1], "--topology", path, "--replicas", "4", "--placement"], check=True,
                          capture_output=True, text=True).stdout
print(text)
sys.exit(re.findall(r"^replica \d+: (\d+)", text, re.M) != ["4", "5", "6", "7"])
