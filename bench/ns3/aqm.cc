// Open loop through one queue discipline: Poisson packets of 1000 bytes at LOAD times 10 Mbit/s, with a buffer of 100
// packets.
// aqm DISC LOAD SEED: prints packets sent and received, and mean and 95th percentile of the one-way delay through the
// queue, ms.
#include <ns3/core-module.h>
#include <ns3/network-module.h>
#include <ns3/internet-module.h>
#include <ns3/point-to-point-module.h>
#include <ns3/traffic-control-module.h>
#include <algorithm>
#include <cstdio>
#include <vector>
using namespace ns3;
static std::vector<double> g_delays; static uint64_t g_sent = 0; static const double WARM = 5, END = 65;
static void Rx(Ptr<Socket> s) {
  Ptr<Packet> p;
  while ((p = s->Recv())) {
    double sent; p->CopyData(reinterpret_cast<uint8_t*>(&sent), 8);
    if (sent >= WARM && sent < END) g_delays.push_back(Simulator::Now().GetSeconds() - sent);
  }
}
static void Tx(Ptr<Socket> s, Ptr<ExponentialRandomVariable> gap) {
  double now = Simulator::Now().GetSeconds();
  if (now >= END) return;
  std::vector<uint8_t> buf(970, 0); memcpy(buf.data(), &now, 8);
  if (now >= WARM) g_sent++;
  s->Send(Create<Packet>(buf.data(), buf.size()));
  Simulator::Schedule(Seconds(gap->GetValue()), &Tx, s, gap);
}
int main(int argc, char** argv) {
  std::string disc = argv[1]; double load = atof(argv[2]); RngSeedManager::SetRun(atoi(argv[3]));
  int flows = argc > 4 ? atoi(argv[4]) : 1;
  NodeContainer n; n.Create(3); InternetStackHelper().Install(n);
  PointToPointHelper fast, slow;
  fast.SetDeviceAttribute("DataRate", StringValue("10Gbps")); fast.SetChannelAttribute("Delay", StringValue("0ms"));
  slow.SetDeviceAttribute("DataRate", StringValue("10Mbps")); slow.SetChannelAttribute("Delay", StringValue("0ms"));
  slow.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
  auto d0 = fast.Install(n.Get(0), n.Get(1)); auto d1 = slow.Install(n.Get(1), n.Get(2));
  TrafficControlHelper tc;
  if (disc == "red") tc.SetRootQueueDisc("ns3::RedQueueDisc", "MaxSize", StringValue("98p"), "MinTh", DoubleValue(100 / 6.0), "MaxTh", DoubleValue(50),
      "QW", DoubleValue(0.002), "LInterm", DoubleValue(10), "Gentle", BooleanValue(true), "MeanPktSize", UintegerValue(1000),
      "LinkBandwidth", StringValue("10Mbps"), "LinkDelay", StringValue("0ms"), "Wait", BooleanValue(false));
  else if (disc == "codel") tc.SetRootQueueDisc("ns3::CoDelQueueDisc", "MaxSize", StringValue("98p"), "MinBytes", UintegerValue(1000));
  else if (disc == "pie") tc.SetRootQueueDisc("ns3::PieQueueDisc", "MaxSize", StringValue("98p"), "MeanPktSize", UintegerValue(1000),
      "QueueDelayReference", StringValue("15ms"), "MaxBurstAllowance", StringValue("150ms"), "Tupdate", StringValue("15ms"),
      "A", DoubleValue(0.125), "B", DoubleValue(1.25), "UseDerandomization", BooleanValue(true));
  else if (disc == "fq-codel") tc.SetRootQueueDisc("ns3::FqCoDelQueueDisc", "MaxSize", StringValue("98p"));
  else tc.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", StringValue("98p"));
  tc.Install(d1.Get(0));
  Ipv4AddressHelper a; a.SetBase("10.0.0.0", "255.255.255.0"); a.Assign(d0); a.SetBase("10.0.1.0", "255.255.255.0"); auto i1 = a.Assign(d1);
  Ipv4GlobalRoutingHelper::PopulateRoutingTables();
  auto rx = Socket::CreateSocket(n.Get(2), UdpSocketFactory::GetTypeId()); rx->Bind(InetSocketAddress(Ipv4Address::GetAny(), 9)); rx->SetRecvCallback(MakeCallback(&Rx));
  for (int f = 0; f < flows; f++) {
    auto tx = Socket::CreateSocket(n.Get(0), UdpSocketFactory::GetTypeId()); tx->Connect(InetSocketAddress(i1.GetAddress(1), 9));
    auto gap = CreateObject<ExponentialRandomVariable>(); gap->SetAttribute("Mean", DoubleValue(8000.0 * flows / (load * 1e7)));
    Simulator::Schedule(Seconds(gap->GetValue()), &Tx, tx, gap);
  }
  Simulator::Stop(Seconds(END + 2)); Simulator::Run();
  std::sort(g_delays.begin(), g_delays.end()); double sum = 0; for (double x : g_delays) sum += x;
  printf("%s load %.2f seed %s flows %d: lost %.4f mean %.3f ms p95 %.3f ms\n", disc.c_str(), load, argv[3], flows, 1 - double(g_delays.size()) / g_sent, sum / g_delays.size() * 1e3, g_delays[g_delays.size() * 95 / 100] * 1e3);
}
