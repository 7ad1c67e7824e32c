; ModuleID = "legacy"
target triple = "x86_64-unknown-linux-gnu"
target datalayout = ""

define void @"r_kernel"(ptr captures(none) noalias readonly align 16 dereferenceable(12845056) %"arg0", ptr captures(none) noalias align 64 dereferenceable(12845056) %"arg1") nounwind
{
entry:
  %".4" = alloca [4096 x float], align 64
  br label %"loop"
loop:
  %"i" = phi  i64 [%".32", %"after.2"], [0, %"entry"]
  %".5" = mul nsw i64 %"i", 200704
  br label %"loop.1"
loop.1:
  %"i.1" = phi  i64 [%".28", %"after.1"], [0, %"loop"]
  %".7" = mul nsw i64 %"i.1", 56
  %".8" = add nsw i64 %".5", %".7"
  %".13" = mul nsw i64 %"i.1", 3584
  %".15" = add nsw i64 %".5", %".13"
  br label %"loop.2"
loop.2:
  %"i.2" = phi  i64 [%".24", %"after"], [0, %"loop.1"]
  %".9" = add nsw i64 %".8", %"i.2"
  %".14" = mul nsw i64 %"i.2", 64
  %".16" = add nsw i64 %".15", %".14"
  br label %"loop.3"
loop.3:
  %"i.3" = phi  i64 [%".20", %"loop.3"], [0, %"loop.2"]
  %".6" = mul nsw i64 %"i.3", 3136
  %".10" = add nsw i64 %".9", %".6"
  %".11" = getelementptr inbounds float, ptr %"arg0", i64 %".10"
  %".12" = load float, ptr %".11", align 4
  %".17" = add nsw i64 %".16", %"i.3"
  %".18" = getelementptr inbounds float, ptr %"arg1", i64 %".17"
  store float %".12", ptr %".18", align 4
  %".20" = add nuw nsw i64 %"i.3", 1
  %".21" = icmp ult i64 %".20", 64
  br i1 %".21", label %"loop.3", label %"after"
after:
  %".24" = add nuw nsw i64 %"i.2", 1
  %".25" = icmp ult i64 %".24", 56
  br i1 %".25", label %"loop.2", label %"after.1"
after.1:
  %".28" = add nuw nsw i64 %"i.1", 1
  %".29" = icmp ult i64 %".28", 56
  br i1 %".29", label %"loop.1", label %"after.2"
after.2:
  %".32" = add nuw nsw i64 %"i", 1
  %".33" = icmp ult i64 %".32", 16
  br i1 %".33", label %"loop", label %"after.3"
after.3:
  ret void
}
