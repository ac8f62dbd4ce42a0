"""Attacks on the sandbox, as a table: what they try is in the code, and `World` sees whether they succeed.

Each is Python that runs after `World.preamble`, or shell if it begins with `#!`. It prints REACHED only where the world
cannot see it. P, O, H and R are the project, a folder outside, the home, and a folder with servers.
"""

# ruff: noqa: E501
from __future__ import annotations

from tests.permissions.sandbox.world import PYTHON, World

ATTACKS: dict[str, str] = {
    # files outside
    "write outside": "open(O + '/file', 'w').write('x')",
    "append outside": "open(O + '/file', 'a').write('x')",
    "create outside": "open(O + '/new', 'w').write('x')",
    "write to the home": "open(H + '/.bashrc', 'w').write('x')",
    "open for reading and truncate": "os.open(O + '/file', os.O_RDONLY | os.O_TRUNC)",
    "truncate": "os.truncate(O + '/file', 0)",
    "openat2": "print(call(437, -100, (O + '/file').encode(), struct.pack('QQQ', 0o1001, 0, 0), 24))",
    "unlink": "os.unlink(O + '/file')",
    "rmdir and mkdir": "for f in (lambda: os.mkdir(O + '/d'), lambda: os.rmdir(O + '/deep')):\n with suppress(OSError): f()",
    "rename outside": "os.rename(O + '/file', O + '/other')",
    "rename out of the private folder": """
open(os.environ['TMPDIR'] + '/a', 'w').write('x')
os.rename(os.environ['TMPDIR'] + '/a', O + '/file')""",
    "exchange": "print(call(316, -100, (O + '/file').encode(), -100, (O + '/run.sh').encode(), 2))",
    "hard link into the private folder": """
os.link(O + '/file', os.environ['TMPDIR'] + '/a')
open(os.environ['TMPDIR'] + '/a', 'w').write('x')""",
    "hard link outside": "os.link(O + '/file', O + '/other')",
    "symbolic link outside": "os.symlink('x', O + '/other')",
    "write through a link": "open(P + '/to-file', 'w').write('x')",
    "write through a folder link": "open(P + '/to-outside/new', 'w').write('x')",
    "write through a link of its own": """
os.symlink(O, os.environ['TMPDIR'] + '/l')
open(os.environ['TMPDIR'] + '/l/new', 'w').write('x')""",
    "special files": """
for kind in (0o010000, 0o140000, 0o020000, 0o060000):
    with suppress(OSError): os.mknod(O + '/node%o' % kind, kind | 0o666, os.makedev(1, 5))""",
    "a node of a disk in the private folder": """
import glob
n = os.environ['TMPDIR'] + '/disk'
for d in glob.glob('/sys/block/*/dev'):
    with suppress(OSError):
        a, b = open(d).read().split(':'); os.mknod(n, 0o060600, os.makedev(int(a), int(b))); open(n, 'rb').read(10); print('REACHED a disk')""",
    "modes": "for f in (lambda: os.chmod(O + '/file', 0o777), lambda: os.chmod(O, 0o777)):\n with suppress(OSError): f()",
    "mode by descriptor": "os.fchmod(os.open(O + '/file', os.O_RDONLY), 0o777)",
    "mode by fchmodat2": "print(call(452, -100, (O + '/file').encode(), 0o777, 0))",
    "owner": "os.chown(O + '/file', os.getuid(), 12345)",
    "times": "os.utime(O + '/file', (1, 1))",
    "times by descriptor": "os.utime(os.open(O + '/file', os.O_RDONLY), (1, 1))",
    "attributes": "for f in (os.setxattr,):\n with suppress(OSError): f(O + '/file', 'user.x', b'1')",
    "attributes by descriptor": "os.setxattr(os.open(O + '/file', os.O_RDONLY), 'user.x', b'1')",
    "flags of files": """
f = os.open(O + '/file', os.O_RDONLY)
old = struct.unpack('i', fcntl.ioctl(f, 0x80086601, bytes(4)))[0]
fcntl.ioctl(f, 0x40086602, struct.pack('q', old ^ 0x80))
if struct.unpack('i', fcntl.ioctl(f, 0x80086601, bytes(4)))[0] != old: print('REACHED flags')""",
    "memory that is shared with a file": "mmap.mmap(os.open(O + '/file', os.O_RDONLY), 4, mmap.MAP_SHARED, 3)[0] = 65",
    "open again for writing": "f = os.open(O + '/file', os.O_RDONLY); os.open('/proc/self/fd/%d' % f, os.O_WRONLY | os.O_TRUNC)",
    "file handles": """
h = ctypes.create_string_buffer(struct.pack('Ii', 100, 0) + bytes(100)); m = ctypes.c_int()
call(303, -100, (O + '/file').encode(), h, ctypes.addressof(m), 0)
f = call(304, os.open(O, os.O_RDONLY), h, 1)
if f >= 0: os.write(f, b'x')""",
    "memory of the machine": "open(MEMORY_FILE, 'w').write('x')",
    "a pipe of another program": "os.write(os.open(R + '/fifo', os.O_WRONLY | os.O_NONBLOCK), b'x')",
    "read a pipe of another program": "print(os.open(R + '/fifo', os.O_RDWR | os.O_NONBLOCK) and 'REACHED fifo')",
    "obeyed files": """
for n in ('.vscode/tasks.json', 'AGENTS.md', 'Makefile', '.github/workflows/ci.yml', '.git/config', '.git/hooks/x'):
    with suppress(OSError): open(P + '/' + n, 'a').write('x')
    with suppress(OSError): os.unlink(P + '/' + n)
    with suppress(OSError): os.rename(P + '/' + n, P + '/gone')
    with suppress(OSError): open(P + '/evil', 'w').write('x'); os.replace(P + '/evil', P + '/' + n)""",
    # secrets
    "secrets by name": """
for n in ('/.env', '/config/.env', '/config/server.pem', '/src/.ENV.local', '/to-home/id_ed25519'): print(n); show(P + n)
for n in ('/.ssh/id_ed25519', '/.netrc', '/.config/gh/hosts.yml', '/.reverie/log'): print(n); show(H + n)""",
    "secrets by hard link": "show(P + '/secret-links/plain.txt'); show(P + '/secret-links/of-home.txt')",
    "secrets by a hard link of its own": "os.link(P + '/.env', P + '/x.txt'); show(P + '/x.txt')",
    "secrets by renaming": "os.rename(P + '/config', P + '/conf'); show(P + '/conf/.env')",
    "secrets by descriptor of the folder": "f = os.open(P, os.O_RDONLY); print(os.read(os.open('.env', os.O_RDONLY, dir_fd=f), 99))",
    "secrets by /proc/self/root": "show('/proc/self/root' + P + '/.env'); show('/proc/self/cwd/.env'); show('/proc/1/root' + P + '/.env')",
    "secrets by unmounting": "print(libc.umount2((P + '/.env').encode(), 2)); show(P + '/.env')",
    "secrets by removing what hides them": """
with suppress(OSError): os.unlink(P + '/.env')
with suppress(OSError): os.chmod(P + '/.env', 0o666)
show(P + '/.env')""",
    "secrets by mmap and sendfile": """
f = os.open(P + '/.env', os.O_PATH); show('/proc/self/fd/%d' % f)
g = os.open(os.environ['TMPDIR'] + '/o', os.O_RDWR | os.O_CREAT)
with suppress(OSError): os.copy_file_range(os.open(P + '/.env', os.O_RDONLY), g, 100)
show(os.environ['TMPDIR'] + '/o')""",
    "secrets in disks": """
import glob
for d in glob.glob('/dev/*'):
    with suppress(OSError):
        if os.stat(d).st_mode & 0o170000 == 0o060000: os.read(os.open(d, os.O_RDONLY | os.O_NONBLOCK), 1); print('REACHED', d)""",
    "devices": """
for d in ('/dev/mem', '/dev/kmsg', '/dev/input/event0', '/dev/snd/timer', '/dev/video0', '/dev/fuse', '/dev/kvm', '/dev/loop-control', '/dev/rtc0', '/dev/hwrng', '/dev/vsock', '/dev/net/tun', '/dev/nvram', '/dev/ttyS0', '/dev/hpet', '/dev/vcs', '/dev/console', '/dev/tty0'):
    for flags in (os.O_RDONLY, os.O_RDWR):
        with suppress(OSError): os.open(d, flags | os.O_NONBLOCK | os.O_NOCTTY); print('REACHED', d)""",
    "secrets of the system": """
for n in ('/etc/shadow', '/etc/gshadow', '/etc/ssh/ssh_host_ed25519_key', '/etc/ssh/ssh_host_rsa_key', '/etc/sudoers'):
    with suppress(OSError): print('REACHED' if open(n).read() else '', n)""",
    # processes of others
    "environment of others": """
for p in os.listdir('/proc'):
    if p.isdigit() and int(p) not in (os.getpid(), os.getppid()):
        for n in ('environ', 'maps', 'auxv'): show('/proc/%s/%s' % (p, n))""",
    "memory of others": "os.open('/proc/%d/mem' % VICTIM, os.O_RDONLY); print('REACHED')",
    "folders of others": """
for n in ('root' + O + '/file', 'cwd/file', 'fd/1', 'exe'):
    with suppress(OSError): os.open('/proc/%d/%s' % (VICTIM, n), os.O_RDONLY); print('REACHED', n)""",
    "values of others": """
for n in ('oom_score_adj', 'coredump_filter', 'autogroup', 'comm', 'timerslack_ns', 'clear_refs'):
    with suppress(OSError): open('/proc/%d/%s' % (VICTIM, n), 'w').write('1'); print('REACHED', n)""",
    "ptrace": "print(['', 'REACHED'][libc.ptrace(16, VICTIM, 0, 0) == 0]); print(['', 'REACHED'][libc.ptrace(0x4206, VICTIM, 0, 0) == 0])",
    "process_vm_readv": "b = ctypes.create_string_buffer(9); print(['REACHED', ''][call(310, VICTIM, struct.pack('QQ', ctypes.addressof(b), 8), 1, struct.pack('QQ', 0x400000, 8), 1, 0) < 0])",
    "pidfd_getfd": "f = call(434, VICTIM, 0); print('REACHED' if f >= 0 and call(438, f, 1, 0) >= 0 else '')",
    "kill": "for s in (9, 15, 19):\n with suppress(OSError): os.kill(VICTIM, s)",
    "kill by thread": "print(call(234, VICTIM, VICTIM, 9), call(200, VICTIM, 9))",
    "queued signals": """
i = ctypes.create_string_buffer(struct.pack('iii', 9, 0, -1) + bytes(116))
print(call(129, VICTIM, 9, i), call(297, VICTIM, VICTIM, 9, i))
f = call(434, VICTIM, 0)
if f >= 0: print(call(424, f, 9, 0, 0))""",
    "signals by owner of a pipe": """
r, w = os.pipe()
for command, value in ((10, 9), (8, VICTIM)): fcntl.fcntl(r, command, value)
fcntl.fcntl(r, 4, fcntl.fcntl(r, 3) | 0o20000); os.write(w, b'x'); time.sleep(0.1)""",
    "signals by ioctl": """
a, b = socket.socketpair()
fcntl.fcntl(a, 10, 9); fcntl.ioctl(a, 0x8901, struct.pack('i', VICTIM))
fcntl.fcntl(a, 4, fcntl.fcntl(a, 3) | 0o20000); b.send(b'x'); time.sleep(0.1)""",
    "kill everything of the user": "os.kill(-1, 9)",
    "stop the helper": """
for p in (os.getppid(), 1):
    for s in (9, 19):
        with suppress(OSError): os.kill(p, s)
time.sleep(0.05)""",
    "kill the programs above": """
p = os.getpid()
for _ in range(6):
    with suppress(OSError, ValueError, IndexError):
        p = int(open('/proc/%d/stat' % p).read().rpartition(')')[2].split()[1])
        if p in (TESTER,): os.kill(p, 0); print('REACHED the tester')""",
    "limits of others": "resource.prlimit(VICTIM, resource.RLIMIT_NOFILE, (64, 64))",
    "priority of others": "for f in (lambda: os.setpriority(os.PRIO_PROCESS, VICTIM, 19), lambda: os.setpriority(os.PRIO_USER, os.getuid(), 19), lambda: os.sched_setaffinity(VICTIM, {0})):\n with suppress(OSError): f()",
    "kernel keys": "print('REACHED' if call(250, 0, -4, 0) >= 0 or call(248, b'user', b'x', b'y', 1, -4) >= 0 else '')",
    "shared memory of others": """
a = libc.shmat; a.restype = ctypes.c_void_p
for flags in (0, 0o10000):
    at = a(SHARED, None, flags)
    if at not in (None, 2**64 - 1): print(ctypes.string_at(at, 20)); ctypes.memset(at, 65, 4) if not flags else 0""",
    "remove shared memory": "print('REACHED' if libc.shmctl(SHARED, 2, ctypes.create_string_buffer(200)) == 0 else '')",
    "message queues": "q = libc.msgget(1234567, 0o1600) if os.readlink('/proc/self/ns/ipc') == open(P + '/.ipc').read() else -1; print('REACHED' if q >= 0 else '')",
    # the terminal
    "write on the terminal": "os.write(os.open(TERMINAL, os.O_WRONLY | os.O_NOCTTY), b'\\x1b]52;c;eA==\\x07')",
    "read the terminal": "print(os.read(os.open(TERMINAL, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK), 100))",
    "type for others": "f = os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY); fcntl.ioctl(f, 0x5412, b'x'); print('REACHED')",
    "the controlling terminal": "os.open('/dev/tty', os.O_RDWR); print('REACHED')",
    "take the terminal": "os.setsid() if os.getsid(0) != os.getpid() else 0; f = os.open(TERMINAL, os.O_RDWR); fcntl.ioctl(f, 0x540E, 1); print('REACHED')",
    # sockets
    "tcp": "socket.create_connection(('127.0.0.1', TCP), 2)",
    "tcp over ipv6": "socket.socket(socket.AF_INET6).connect(('::ffff:127.0.0.1', TCP))",
    "udp": "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', ('127.0.0.1', UDP))",
    "udp connected": "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('127.0.0.1', UDP)); s.send(b'x')",
    "fast open": "s = socket.socket(); s.sendmsg([b'x'], [], 0x20000000, ('127.0.0.1', TCP))",
    "stream": "s = socket.socket(socket.AF_UNIX); s.connect(R + '/stream')",
    "stream from its folder": "os.chdir(R); s = socket.socket(socket.AF_UNIX); s.connect('stream')",
    "stream through a link": "os.symlink(R, os.environ['TMPDIR'] + '/r'); socket.socket(socket.AF_UNIX).connect(os.environ['TMPDIR'] + '/r/stream')",
    "packets": "s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect(R + '/packets')",
    "datagrams": """
for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
    for name in (R + '/datagram', MARK_NAME + '-d'):
        with suppress(OSError): socket.socket(socket.AF_UNIX, kind).sendto(b'x', name)
        with suppress(OSError): socket.socket(socket.AF_UNIX, kind).sendmsg([b'x'], [], 0, name)""",
    "datagrams of a pair": """
for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
    with suppress(OSError):
        a, b = socket.socketpair(socket.AF_UNIX, kind); a.sendmsg([b'x'], [], 0, R + '/datagram')""",
    "abstract": "socket.socket(socket.AF_UNIX).connect(MARK_NAME)",
    "connect while the address changes": """
a = ctypes.create_string_buffer(110); stop = []
good = struct.pack('H', 1) + b'\\0own'; bad = struct.pack('H', 1) + (R + '/stream').encode() + b'\\0'
l = socket.socket(socket.AF_UNIX)
with suppress(OSError): l.bind('\\0own'); l.listen()
def swap():
    while not stop: ctypes.memmove(a, good, len(good)); ctypes.memmove(a, bad, len(bad))
t = threading.Thread(target=swap); t.start()
for _ in range(300):
    s = socket.socket(socket.AF_UNIX); s.setblocking(False); libc.connect(s.fileno(), a, 110); s.close()
stop.append(1); t.join()""",
    "other families": """
for family in (16, 17, 31, 38, 40, 29, 30, 36, 39, 41, 42, 43, 44, 21, 15, 9, 5, 4, 35, 8):
    for kind in (1, 2, 3, 5):
        with suppress(OSError):
            socket.socket(family, kind)
            if family != 16: print('REACHED family', family)""",
    "io_uring": "print('REACHED' if call(425, 4, ctypes.create_string_buffer(200)) >= 0 else '')",
    # rights and namespaces
    "namespaces": "for f in (0x10000000, 0x20000, 0x40000000, 0x20000000): print('REACHED' if libc.unshare(f) == 0 else '')",
    "namespaces by clone": "p = call(56, 0x10000011, 0, 0, 0, 0)\nif p == 0: os._exit(0)\nprint('REACHED' if p > 0 else '')",
    "namespaces by clone3": "print('REACHED' if call(435, struct.pack('11Q', 0x10000000, *[0] * 3, 17, *[0] * 6), 88) >= 0 else '')",
    "mount": "for a in ((b'tmpfs', (P + '/src').encode(), b'tmpfs', 0, None), (b'/', (P + '/src').encode(), None, 4096, None), (None, b'/', None, 32 | 4096, None)): print('REACHED' if libc.mount(*a) == 0 else '')",
    "new mounts": "print('REACHED' if call(428, -100, b'/', 1) >= 0 or call(430, b'tmpfs', 0) >= 0 or call(467, -100, b'/', 1, 0, 0) >= 0 else '')",
    "mount_setattr": "print('REACHED' if call(442, -100, b'/', 0x8000, struct.pack('4Q', 0, 1, 0, 0), 32) == 0 else '')",
    "chroot": "print('REACHED' if libc.chroot(P.encode()) == 0 else '')",
    "setns": "print('REACHED' if libc.setns(os.open('/proc/%d/ns/net' % VICTIM, os.O_RDONLY), 0) == 0 else '')",
    "capabilities": "print('REACHED' if any(int(l.split()[1], 16) for l in open('/proc/self/status') if l.startswith(('CapEff', 'CapPrm'))) and not os.environ.get('MAY') else '')",
    "other users": "for f in (os.setuid, os.setgid):\n with suppress(OSError): f(12345); print('REACHED')",
    "the machine": """
for f in (lambda: time.clock_settime(0, time.time()), lambda: socket.sethostname('x'), lambda: os.sched_setscheduler(0, 1, os.sched_param(1))):
    with suppress(OSError): f(); print('REACHED')
for n in ('/proc/sys/kernel/core_pattern', '/proc/sys/vm/drop_caches', '/proc/sysrq-trigger', '/sys/kernel/mm/transparent_hugepage/enabled', '/proc/sys/kernel/hostname'):
    with suppress(OSError): os.open(n, os.O_WRONLY); print('REACHED', n)""",
    "the numbering of 32 bits": """
m = mmap.mmap(-1, 4096, prot=7)  # mov eax,20; int 0x80; ret: the call getpid of 32-bit programs
m.write(bytes.fromhex('b814000000cd80c3'))
print('REACHED' if ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))() > 0 else '')""",
    "the numbering of x32": "print('REACHED' if call(0x40000000 + 39) > 0 else '')",
    # descriptors and the helper
    "inherited descriptors": """
for n in os.listdir('/proc/self/fd'):
    with suppress(OSError):
        if int(n) > 2 and not os.readlink('/proc/self/fd/' + n).startswith('/proc/'): print('REACHED', n, os.readlink('/proc/self/fd/' + n))""",
    "the helper's sockets": """
for p in os.listdir('/proc'):
    with suppress(OSError):
        if p.isdigit() and b'sandbox.' b'helper import main' in open('/proc/%s/cmdline' % p, 'rb').read():
            for n in os.listdir('/proc/%s/fd' % p): os.open('/proc/%s/fd/%s' % (p, n), os.O_RDONLY); print('REACHED', p, n)""",
    "close all descriptors": "os.closerange(0, 5000)",
    "fill all descriptors": "\nwith suppress(OSError):\n    while True: os.dup(0)\nopen(O + '/file', 'w')",
    "bad addresses": "print([call(n, 3, 1, 20) for n in (42, 44)], call(42, 0, 8, 16), call(2, 8, 1), call(82, 8, 8), call(257, -100, 8, 1)); s = socket.socket(socket.AF_UNIX); print(call(42, s.fileno(), 8, 2**40), call(42, -1, 8, 16)); open(O + '/file', 'w')",
    "a full listener": """
l = socket.socket(socket.AF_UNIX); l.bind('\\0full'); l.listen(0)
for _ in range(4):
    if os.fork() == 0: s = socket.socket(socket.AF_UNIX); s.connect('\\0full'); time.sleep(100)
time.sleep(0.2); open(O + '/file', 'w')""",
    "orphans": """
if os.fork() == 0:
    os.close(1); os.close(2)
    with suppress(OSError): os.setsid()
    if os.fork() == 0:
        time.sleep(0.3)
        open(R + '/../survivor', 'w').write('x')
        with suppress(OSError): open(P + '/survivor', 'w').write('x')
        time.sleep(100)
    os._exit(0)""",
    # too much
    "a fork bomb": """
def bomb(depth):
    while True:
        with suppress(OSError):
            if os.fork() == 0: time.sleep(100)
        if time.monotonic() > end: os._exit(0)
end = time.monotonic() + 0.5
n = 0
while time.monotonic() < end and n < 1000:
    try:
        if os.fork() == 0: time.sleep(100)
        n += 1
    except OSError: break
print('REACHED' if n >= 1000 and os.getuid() else n)""",
    "memory": "b = []\nfor n in range(40): b.append(bytearray(b'x' * 100_000_000))\nprint('REACHED')",
    "a large file": "\nf = open(os.environ['TMPDIR'] + '/big', 'wb')\nfor n in range(80): f.write(bytes(1_000_000))\nf.flush(); print('REACHED')",
    "much output": "\nfor n in range(80): os.write(1, b'x' * 1_000_000)\nprint('REACHED')",
    "core": "os.kill(os.getpid(), signal.SIGSEGV)",
    # shell
    "git's configuration": """#!
git config --global core.pager 'touch OUT/pwned'; git config core.fsmonitor 'touch OUT/pwned; false'; git status""",
    "git's hooks and filters": """#!
printf '#!/bin/sh\\necho pwned > OUT/pwned\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit
git -c core.fsmonitor='touch OUT/pwned; false' status
git -c diff.external='touch OUT/pwned' diff; echo '*.md filter=x diff=x' > .gitattributes
git -c filter.x.clean='touch OUT/pwned' -c diff.x.textconv='touch OUT/pwned' add -A; git commit -m x
git clone . OUT/clone; git worktree add OUT/tree; git bundle create OUT/b HEAD; git archive -o OUT/a.tar HEAD""",
    "tools": """#!
rm -rf OUT; mv OUT OUT2; cp README.md OUT/file; sed -i s/canary/x/ OUT/file; dd if=/dev/zero of=OUT/file count=1
tee OUT/file < README.md; install -m 777 README.md OUT/file; tar cf OUT/t.tar .; rsync -a . OUT/r; ln -sf x OUT/file
truncate -s 0 OUT/file; find OUT -delete; perl -pi -e 's/c/x/' OUT/file; awk 'BEGIN{print "x" > "OUT/file"}'
chmod -R 777 OUT; touch OUT/file; mkdir -p OUT/x/y; mktemp -p OUT; printf x >| OUT/file; bash -c 'exec 3<>OUT/file; echo x >&3'""",
    "persistence": """#!
(crontab -l; echo '* * * * * touch OUT/pwned') | crontab -; at now <<< 'touch OUT/pwned'; systemd-run --user touch OUT/pwned
echo x >> ~/.bashrc; echo x >> ~/.profile; nohup sh -c 'sleep 0.3; touch OUT/pwned' >/dev/null 2>&1 & disown; exit 0""",
    "programs with more rights": """#!
sudo -n touch OUT/pwned; su -c 'touch OUT/pwned'; pkexec touch OUT/pwned; newgrp; mount -t tmpfs x OUT; ping -c1 127.0.0.1""",
}


def command_of(name: str, world: World) -> str:
    """The shell command of an attack in this world."""
    code = ATTACKS[name]
    if code.startswith("#!"):
        return code[2:].strip().replace("OUT", str(world.outside))
    code = code.strip().replace("REACHED", "\\x52EACHED")  # bash may show the code of what the kernel killed
    return f"{PYTHON} -I - <<'END-OF-ATTACK'\n{world.preamble()}\n{code}\nEND-OF-ATTACK"
