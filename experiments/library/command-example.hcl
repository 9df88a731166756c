# Any program as a workload: a shell pipeline whose output becomes a metric.
#
# The command counts the devices of its node; replace its argv by iperf3, your
# own daemon, or anything that prints a number.
experiment "command-example" {
  title       = "Can a shell command and a probe be measured side by side?"
  duration    = "5s"
  repetitions = 3
  seed        = 1

  smoke {
    duration    = "2s"
    repetitions = 1
  }
}

node "client" {}
node "server" {}

link "path" {
  between = ["client", "server"]
  rate    = "10mbit"
  rtt     = "30ms"
}

workload "command" "listing" {
  on   = "client"
  argv = ["sh", "-c", "echo host: $(cat /proc/sys/kernel/hostname); awk '/^Tcp:/ && $2 ~ /[0-9]/ {print \"established:\", $10}' /proc/net/snmp; echo devices: $(grep -c : /proc/net/dev)"]

  capture "devices_count" {
    regex = "devices: (\\d+)"
    unit  = "1"
  }
}

workload "ping" "probe" {
  from     = "client"
  to       = "server"
  interval = "50ms"
}

check "the client has loopback and one link" {
  condition     = result.listing.devices_count == 2
  error_message = "It has ${result.listing.devices_count} devices."
}

check "the path is 30 ms long" {
  condition     = result.probe.rtt_p50_s >= 0.030 && result.probe.rtt_p50_s < 0.032
  error_message = "The median RTT was ${format("%.2f", result.probe.rtt_p50_s * 1000)} ms."
}
