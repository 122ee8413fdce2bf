// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IPermit2} from "../interfaces/IPermit2.sol";
import {
    ExactWitness,
    IExactPermit2Proxy,
    IUptoPermit2Proxy,
    UptoWitness
} from "../interfaces/IPermit2Proxies.sol";
import {MockERC20} from "../mocks/MockERC20.sol";
import {Permit2Deployment} from "./utils/Permit2Deployment.sol";

/**
 * @title Two payments as the public x402 clients sign them
 * @dev Digests, signatures and calldata are theirs, made outside of this repository and settled on the canonical
 * contracts.
 */
contract Permit2VectorsTest is Permit2Deployment {
    address private constant PAYER = 0x70997970C51812dc3A010C7d01b50e0d17dc79C8;
    address private constant TOKEN = 0x036CbD53842c5426634e7929541eC2318f3dCF7e;
    address private constant TO = 0x209693Bc6afc0C5328bA36FaF03C514EF312287C;
    address private constant FACILITATOR = 0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC;
    uint256 private constant NONCE =
        33247007178036348590600198031289925668252061821958005840077069883511451257277;
    uint256 private constant DEADLINE = 1_740_672_154;
    uint256 private constant VALID_AFTER = 1_740_672_089;
    bytes private constant EXACT_SIGNATURE =
        hex"3786aca99c1c6b5fb899a8981bb38989f17b6f858ca3a64538578f06d5e7a3d743b4646fc4068d368ac9c6d03c4f41bc06098f25d559c7178be11adb1ccc749b1b";
    bytes private constant UPTO_SIGNATURE =
        hex"4fde5bb0541acc4d260147535719f380eeb40bb0b34caf30e81454cb80f313d664a9fbfc1951665aa9d6dce2d49d453f24756c99929889f9372049a1b81be10e1b";

    MockERC20 private token = MockERC20(TOKEN);

    function setUp() public {
        vm.chainId(84_532);
        vm.warp(1_740_672_100);
        deploy();
        construct(TOKEN, bytes.concat(codeOf("MockERC20"), abi.encode("USDC", "USDC", uint8(6))));
        token.mint(PAYER, 20_000);
        vm.prank(PAYER);
        token.approve(address(PERMIT2), type(uint256).max);
    }

    function deploy() internal virtual {
        deployPermit2();
        deployPermit2Proxies();
    }

    function test_exact() public {
        IPermit2.PermitTransferFrom memory permit = permitOf(10_000);
        bytes32 witness = exactWitness(TO, VALID_AFTER);
        assertEq(witness, 0x1d9a4354ed1358fb2043e93ba167a9ece2fabb07018aec3d609abccd18aec24b, "witness");
        assertEq(
            permit2Digest(permit, EXACT_PROXY, witness),
            0x21528e1468aac114016416353e2309329f217dc180b21baa1d81cde941095685,
            "digest"
        );
        bytes memory data = abi.encodeCall(
            IExactPermit2Proxy.settle, (permit, PAYER, ExactWitness(TO, VALID_AFTER), EXACT_SIGNATURE)
        );
        assertEq(
            keccak256(data), 0x750f6c182d33d61a57c8f440af048543ac747c4623134612ccacb57cb2c505df, "calldata"
        );
        (bool success,) = address(EXACT_PROXY).call(data);
        assertTrue(success, "settled");
        assertPaid(10_000);
    }

    function test_upto() public {
        IPermit2.PermitTransferFrom memory permit = permitOf(20_000);
        bytes32 witness = uptoWitness(TO, FACILITATOR, VALID_AFTER);
        assertEq(witness, 0x29ab19849d58deb82616faea425cd556386689bf596adac686484dc31a6f0c5c, "witness");
        assertEq(
            permit2Digest(permit, UPTO_PROXY, witness),
            0x54a0d2168fc229a32f53ad75b9e9b0325c3b3609cf0ad95b0401438176f91ad8,
            "digest"
        );
        bytes memory data = abi.encodeCall(
            IUptoPermit2Proxy.settle,
            (permit, 1_858, PAYER, UptoWitness(TO, FACILITATOR, VALID_AFTER), UPTO_SIGNATURE)
        );
        assertEq(
            keccak256(data), 0x8995277d2a692293a90840c1053d7a58f4d01813ab74636a611f5ed2ab955031, "calldata"
        );
        vm.prank(FACILITATOR);
        (bool success,) = address(UPTO_PROXY).call(data);
        assertTrue(success, "settled");
        assertPaid(1_858);
    }

    function permitOf(uint256 amount) private pure returns (IPermit2.PermitTransferFrom memory) {
        return IPermit2.PermitTransferFrom(IPermit2.TokenPermissions(TOKEN, amount), NONCE, DEADLINE);
    }

    function assertPaid(uint256 amount) private view {
        assertEq(token.balanceOf(TO), amount, "paid");
        assertEq(
            PERMIT2.nonceBitmap(
                PAYER, 129871121789204486682032023559726272141609616492023460312801054232466606473
            ),
            1 << 189,
            "bitmap"
        );
    }
}

contract OriginalPermit2VectorsTest is Permit2VectorsTest {
    function deploy() internal override {
        deployOriginalPermit2();
        deployPermit2Proxies();
    }
}
