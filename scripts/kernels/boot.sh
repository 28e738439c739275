#!/bin/sh
# Boots the kernel of Debian packages in QEMU on this machine's own root, and runs a command there as root. Needs no KVM. The
# guest sees the root read-only, with a tmpfs on top. Prints the command's output and exits with its status.
#   boot.sh KERNEL.deb[,MODULES.deb...] COMMAND...       for example: boot.sh linux-image-6.1.0-50-amd64_*.deb uname -r
# Needs qemu-system-x86, busybox-static, cpio (apt-get install). Installs nothing; the guest's only network is loopback.
# Variables: LIMIT seconds (600), MEMORY MiB (1024), CPUS (2), ACCEL (tcg), WORK (where packages are unpacked).
set -eu
[ $# -ge 2 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 2; }
debs=$1; shift
work=${WORK:-$(cd "$(dirname "$0")/../.." && pwd)/target/kernels/roots}
name=$(basename "${debs%%,*}" .deb)
root=$work/$name
for tool in qemu-system-x86_64 busybox cpio dpkg-deb; do
    command -v $tool >/dev/null || { echo "boot.sh: no $tool (apt-get install qemu-system-x86 busybox-static cpio)"; exit 2; }
done

# Unpacks the kernel, and uncompressed modules that an emulated machine and TCP may need.
prepare() {
    mkdir -p "$root/deb" "$root/initrd"
    echo "$debs" | tr , '\n' | while read -r deb; do dpkg-deb -x "$deb" "$root/deb"; done
    vmlinuz=$(find "$root/deb" -name 'vmlinuz*' | head -n 1)
    modules=$(find "$root/deb" -type d -path '*lib/modules/*' -name kernel | head -n 1)
    version=$(basename "$(dirname "$modules")")
    initrd=$root/initrd
    mkdir -p "$initrd/bin" "$initrd/lib/modules/$version" "$initrd/proc" "$initrd/sys" "$initrd/dev" "$initrd/sysroot" "$initrd/over"
    (cd "$modules/.." && find kernel -name '*.ko*' | grep -E \
        '/(virtio|virtio_ring|virtio_pci[a-z_]*|9p[a-z_]*|netfs|fscache|overlay|veth|tun|ifb|dummy|crc[a-z0-9_-]*|libcrc[a-z0-9_-]*)\.ko|/net/(ipv4|ipv6|sched|core|packet|unix|netlink|llc|802|bridge|netfilter|mptcp|tls)/|/drivers/virtio/|/crypto/' |
        cpio --quiet -pdm "$initrd/lib/modules/$version")
    cp "$modules"/../modules.builtin* "$modules"/../modules.order "$initrd/lib/modules/$version/" 2>/dev/null || true
    find "$initrd/lib/modules" -name '*.ko.xz' -exec unxz {} +
    find "$initrd/lib/modules" -name '*.ko.zst' -exec zstd -q -d --rm {} +
    busybox depmod -b "$initrd" "$version" 2>/dev/null
    cp "$(command -v busybox)" "$initrd/bin/busybox"
    cat >"$initrd/init" <<'INIT'
#!/bin/busybox sh
export PATH=/bin:/sbin:/usr/bin:/usr/sbin
/bin/busybox mkdir -p /sbin; /bin/busybox --install -s /bin; ln -sf /bin/busybox /sbin/modprobe
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
fail() { echo "boot.sh: $*" >/dev/ttyS1; poweroff -f; }
for module in virtio_pci 9pnet_virtio 9p overlay; do modprobe $module 2>/dev/null; done
mkdir -p /over /host /sysroot
mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose,msize=512000 host /host || fail "no 9p in this kernel"
mount -t tmpfs over /over; mkdir /over/up /over/work
mount -t overlay -o lowerdir=/host,upperdir=/over/up,workdir=/over/work over /sysroot || fail "no overlay in this kernel"
for at in proc sys dev; do mkdir -p /sysroot/$at; mount --move /$at /sysroot/$at; done
mkdir -p /sysroot/dev/pts /sysroot/dev/shm
mount -t devpts pts /sysroot/dev/pts; mount -t tmpfs shm /sysroot/dev/shm
mount -t cgroup2 cgroup /sysroot/sys/fs/cgroup; mount -t securityfs s /sysroot/sys/kernel/security 2>/dev/null
# A root made for containers has no kmod, so busybox's modprobe loads the modules that the kernel requests.
mkdir -p /sysroot/lib/modules /sysroot/run/guest
cp -r /lib/modules/* /sysroot/lib/modules/
cp /bin/busybox /sysroot/run/guest/busybox; ln -s busybox /sysroot/run/guest/modprobe
echo /run/guest/modprobe >/sysroot/proc/sys/kernel/modprobe
ip link set lo up; hostname guest
exec switch_root /sysroot /bin/sh -c '
    export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/guest HOME=/tmp TERM=dumb
    script=$(sed -n "s/.*guest=\([^ ]*\).*/\1/p" /proc/cmdline)
    cd "$(dirname "$script")"
    setsid sh "$script" </dev/null >/dev/ttyS1 2>&1
    echo "boot.sh: exit $?, after $(cut -d " " -f 1 /proc/uptime) s" >/dev/ttyS1
    sync; sleep 1; echo o >/proc/sysrq-trigger; sleep 60'
INIT
    chmod +x "$initrd/init"
    (cd "$initrd" && find . | cpio --quiet -o -H newc) >"$root/initrd.cpio"
    ln -sf "$vmlinuz" "$root/vmlinuz"
    rm -rf "$initrd"
}
[ -s "$root/initrd.cpio" ] || prepare

run=$(mktemp -d "$work/run.XXXXXX")
trap 'rm -rf "$run"' EXIT
{ echo "cd '$PWD' || exit"; for word; do printf "'%s' " "$word"; done; echo; } >"$run/guest.sh"
timeout --kill-after=5 "${LIMIT:-600}" qemu-system-x86_64 -accel "${ACCEL:-tcg,thread=multi}" -cpu max -smp "${CPUS:-2}" \
    -m "${MEMORY:-1024}" -nographic -nodefaults -no-reboot -net none -monitor none \
    -kernel "$root/vmlinuz" -initrd "$root/initrd.cpio" \
    -append "console=ttyS0 quiet panic=-1 nokaslr mitigations=off guest=$run/guest.sh" \
    -virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap \
    -device virtio-rng-pci -serial "file:$run/kernel.log" -serial "file:$run/output" &
qemu=$!
trap 'kill $qemu 2>/dev/null || true; rm -rf "$run"' EXIT INT TERM
wait $qemu || true
tr -d '\r' <"$run/output"
tr -d '\r' <"$run/kernel.log" | tail -n "${KERNEL_LINES:-20}" | sed 's/^/kernel: /' >&2
status=$(tr -d '\r' <"$run/output" | sed -n 's/^boot.sh: exit \([0-9]*\),.*/\1/p' | tail -n 1)
exit "${status:-125}"
