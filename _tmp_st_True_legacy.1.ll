; ModuleID = "legacy"
target triple = "x86_64-unknown-linux-gnu"
target datalayout = ""

define void @"r_kernel"(ptr captures(none) noalias readonly align 16 dereferenceable(12845056) %"arg0", ptr captures(none) noalias align 64 dereferenceable(12845056) %"arg1", i64 %"begin", i64 %"end") nounwind
{
entry:
  %".6" = alloca [4096 x float], align 64
  %".7" = icmp slt i64 %"end", 896
  %".8" = select  i1 %".7", i64 %"end", i64 896
  br label %"head"
head:
  %"i" = phi  i64 [%".42", %"after.2"], [%"begin", %"entry"]
  %".40" = icmp slt i64 %"i", %".8"
  br i1 %".40", label %"loop", label %"after.3"
loop:
  %".9" = urem i64 %"i", 56
  %".10" = udiv i64 %"i", 56
  %".11" = udiv i64 %".10", 16
  %".13" = mul nsw i64 %".10", 200704
  br label %"loop.1"
loop.1:
  %"i.1" = phi  i64 [%".36", %"after.1"], [0, %"loop"]
  %".12" = add nsw i64 %".9", %"i.1"
  %".15" = mul nsw i64 %".12", 56
  %".16" = add nsw i64 %".13", %".15"
  %".21" = mul nsw i64 %".12", 3584
  %".23" = add nsw i64 %".13", %".21"
  br label %"loop.2"
loop.2:
  %"i.2" = phi  i64 [%".32", %"after"], [0, %"loop.1"]
  %".17" = add nsw i64 %".16", %"i.2"
  %".22" = mul nsw i64 %"i.2", 64
  %".24" = add nsw i64 %".23", %".22"
  br label %"loop.3"
loop.3:
  %"i.3" = phi  i64 [%".28", %"loop.3"], [0, %"loop.2"]
  %".14" = mul nsw i64 %"i.3", 3136
  %".18" = add nsw i64 %".17", %".14"
  %".19" = getelementptr inbounds float, ptr %"arg0", i64 %".18"
  %".20" = load float, ptr %".19", align 4
  %".25" = add nsw i64 %".24", %"i.3"
  %".26" = getelementptr inbounds float, ptr %"arg1", i64 %".25"
  store float %".20", ptr %".26", align 4
  %".28" = add nuw nsw i64 %"i.3", 1
  %".29" = icmp ult i64 %".28", 64
  br i1 %".29", label %"loop.3", label %"after"
after:
  %".32" = add nuw nsw i64 %"i.2", 1
  %".33" = icmp ult i64 %".32", 56
  br i1 %".33", label %"loop.2", label %"after.1"
after.1:
  %".36" = add nuw nsw i64 %"i.1", 1
  %".37" = icmp ult i64 %".36", 8
  br i1 %".37", label %"loop.1", label %"after.2"
after.2:
  %".42" = add nsw i64 %"i", 8
  br label %"head"
after.3:
  ret void
}
