; ModuleID = '<string>'
source_filename = "<string>"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

; Function Attrs: nofree norecurse nosync nounwind memory(argmem: readwrite)
define void @r_kernel(ptr noalias readonly align 16 captures(none) dereferenceable(12845056) %arg0, ptr noalias writeonly align 64 captures(none) dereferenceable(12845056) %arg1) local_unnamed_addr #0 {
entry:
  br label %loop

loop:                                             ; preds = %after.2, %entry
  %i = phi i64 [ %.32, %after.2 ], [ 0, %entry ]
  %.5 = mul nuw nsw i64 %i, 200704
  %0 = getelementptr inbounds nuw float, ptr %arg0, i64 %.5
  %1 = getelementptr inbounds nuw float, ptr %arg1, i64 %.5
  br label %loop.1

loop.1:                                           ; preds = %after.1, %loop
  %i.1 = phi i64 [ %.28, %after.1 ], [ 0, %loop ]
  %.idx = mul nuw nsw i64 %i.1, 224
  %2 = getelementptr inbounds nuw i8, ptr %0, i64 %.idx
  %.idx1 = mul nuw nsw i64 %i.1, 14336
  %3 = getelementptr inbounds nuw i8, ptr %1, i64 %.idx1
  br label %loop.2

loop.2:                                           ; preds = %loop.2, %loop.1
  %i.2 = phi i64 [ 0, %loop.1 ], [ %.24.3, %loop.2 ]
  %.idx2 = shl nuw nsw i64 %i.2, 8
  %4 = getelementptr inbounds nuw i8, ptr %3, i64 %.idx2
  %5 = getelementptr inbounds nuw float, ptr %2, i64 %i.2
  %6 = getelementptr inbounds nuw i8, ptr %5, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %6, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather, ptr %4, align 64
  %7 = getelementptr inbounds nuw i8, ptr %5, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %7, <16 x i1> splat (i1 true), <16 x float> poison)
  %8 = getelementptr inbounds nuw i8, ptr %4, i64 64
  store <16 x float> %wide.masked.gather.1, ptr %8, align 64
  %9 = getelementptr inbounds nuw i8, ptr %5, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %9, <16 x i1> splat (i1 true), <16 x float> poison)
  %10 = getelementptr inbounds nuw i8, ptr %4, i64 128
  store <16 x float> %wide.masked.gather.2, ptr %10, align 64
  %11 = getelementptr inbounds nuw i8, ptr %5, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %11, <16 x i1> splat (i1 true), <16 x float> poison)
  %12 = getelementptr inbounds nuw i8, ptr %4, i64 192
  store <16 x float> %wide.masked.gather.3, ptr %12, align 64
  %.24 = or disjoint i64 %i.2, 1
  %.idx2.1 = shl nuw nsw i64 %.24, 8
  %13 = getelementptr inbounds nuw i8, ptr %3, i64 %.idx2.1
  %14 = getelementptr inbounds nuw float, ptr %2, i64 %.24
  %15 = getelementptr inbounds nuw i8, ptr %14, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather.16 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %15, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather.16, ptr %13, align 64
  %16 = getelementptr inbounds nuw i8, ptr %14, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather.1.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %16, <16 x i1> splat (i1 true), <16 x float> poison)
  %17 = getelementptr inbounds nuw i8, ptr %13, i64 64
  store <16 x float> %wide.masked.gather.1.1, ptr %17, align 64
  %18 = getelementptr inbounds nuw i8, ptr %14, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather.2.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %18, <16 x i1> splat (i1 true), <16 x float> poison)
  %19 = getelementptr inbounds nuw i8, ptr %13, i64 128
  store <16 x float> %wide.masked.gather.2.1, ptr %19, align 64
  %20 = getelementptr inbounds nuw i8, ptr %14, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather.3.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %20, <16 x i1> splat (i1 true), <16 x float> poison)
  %21 = getelementptr inbounds nuw i8, ptr %13, i64 192
  store <16 x float> %wide.masked.gather.3.1, ptr %21, align 64
  %.24.1 = or disjoint i64 %i.2, 2
  %.idx2.2 = shl nuw nsw i64 %.24.1, 8
  %22 = getelementptr inbounds nuw i8, ptr %3, i64 %.idx2.2
  %23 = getelementptr inbounds nuw float, ptr %2, i64 %.24.1
  %24 = getelementptr inbounds nuw i8, ptr %23, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather.27 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %24, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather.27, ptr %22, align 64
  %25 = getelementptr inbounds nuw i8, ptr %23, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather.1.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %25, <16 x i1> splat (i1 true), <16 x float> poison)
  %26 = getelementptr inbounds nuw i8, ptr %22, i64 64
  store <16 x float> %wide.masked.gather.1.2, ptr %26, align 64
  %27 = getelementptr inbounds nuw i8, ptr %23, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather.2.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %27, <16 x i1> splat (i1 true), <16 x float> poison)
  %28 = getelementptr inbounds nuw i8, ptr %22, i64 128
  store <16 x float> %wide.masked.gather.2.2, ptr %28, align 64
  %29 = getelementptr inbounds nuw i8, ptr %23, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather.3.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %29, <16 x i1> splat (i1 true), <16 x float> poison)
  %30 = getelementptr inbounds nuw i8, ptr %22, i64 192
  store <16 x float> %wide.masked.gather.3.2, ptr %30, align 64
  %.24.2 = or disjoint i64 %i.2, 3
  %.idx2.3 = shl nuw nsw i64 %.24.2, 8
  %31 = getelementptr inbounds nuw i8, ptr %3, i64 %.idx2.3
  %32 = getelementptr inbounds nuw float, ptr %2, i64 %.24.2
  %33 = getelementptr inbounds nuw i8, ptr %32, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather.38 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %33, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather.38, ptr %31, align 64
  %34 = getelementptr inbounds nuw i8, ptr %32, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather.1.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %34, <16 x i1> splat (i1 true), <16 x float> poison)
  %35 = getelementptr inbounds nuw i8, ptr %31, i64 64
  store <16 x float> %wide.masked.gather.1.3, ptr %35, align 64
  %36 = getelementptr inbounds nuw i8, ptr %32, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather.2.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %36, <16 x i1> splat (i1 true), <16 x float> poison)
  %37 = getelementptr inbounds nuw i8, ptr %31, i64 128
  store <16 x float> %wide.masked.gather.2.3, ptr %37, align 64
  %38 = getelementptr inbounds nuw i8, ptr %32, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather.3.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %38, <16 x i1> splat (i1 true), <16 x float> poison)
  %39 = getelementptr inbounds nuw i8, ptr %31, i64 192
  store <16 x float> %wide.masked.gather.3.3, ptr %39, align 64
  %.24.3 = add nuw nsw i64 %i.2, 4
  %exitcond3.not.3 = icmp eq i64 %.24.3, 56
  br i1 %exitcond3.not.3, label %after.1, label %loop.2

after.1:                                          ; preds = %loop.2
  %.28 = add nuw nsw i64 %i.1, 1
  %exitcond4.not = icmp eq i64 %.28, 56
  br i1 %exitcond4.not, label %after.2, label %loop.1

after.2:                                          ; preds = %after.1
  %.32 = add nuw nsw i64 %i, 1
  %exitcond5.not = icmp eq i64 %.32, 16
  br i1 %exitcond5.not, label %after.3, label %loop

after.3:                                          ; preds = %after.2
  ret void
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(read)
declare <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr>, <16 x i1>, <16 x float>) #1

attributes #0 = { nofree norecurse nosync nounwind memory(argmem: readwrite) "denormal-fp-math"="preserve-sign,preserve-sign" "prefer-vector-width"="512" }
attributes #1 = { nocallback nofree nosync nounwind willreturn memory(read) }
